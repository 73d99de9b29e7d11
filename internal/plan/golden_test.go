package plan

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// goldenDir holds whole models that the official compressor wrote, next to their sources.
const goldenDir = "../../testdata/golden/e2e"

// TestGoldenModels plans each golden source with its pattern dict and compares every output file's
// tensor list with the official file, in both layouts.
func TestGoldenModels(t *testing.T) {
	for _, model := range []string{"bias_f32", "qknorm"} {
		for layout, dir := range map[catalog.Layout]string{catalog.Transformers: "multi", catalog.TransformersSingle: "single"} {
			t.Run(model+"/"+dir, func(t *testing.T) {
				src, dict := readGolden(t, model)
				p := mustPlan(t, src, Options{PatternDict: dict, Layout: layout})
				checkFiles(t, p, filepath.Join(goldenDir, model, dir))
			})
		}
	}
}

// readGolden reads a golden model's source and pattern dict.
func readGolden(t *testing.T, model string) (Source, catalog.PatternDict) {
	t.Helper()
	dir := filepath.Join(goldenDir, model)
	dict, err := catalog.ParsePatternDict(world.Read(t, filepath.Join(dir, "pattern_dict.json")))
	if err != nil {
		t.Fatal(err)
	}
	weights := readWeights(t, filepath.Join(dir, "source"), "model.safetensors")
	return Source{
		ID: model, Weights: []WeightFile{weights}, Config: world.Read(t, filepath.Join(dir, "source", "config.json")),
		Files: []File{weights.File, {Path: "config.json", Size: 202}},
	}, dict
}

// readWeights reads the header of a safetensors file.
func readWeights(t *testing.T, dir, name string) WeightFile {
	t.Helper()
	data := world.Read(t, filepath.Join(dir, name))
	h, err := safetensors.ReadHeader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return WeightFile{File: File{Path: name, Size: int64(len(data))}, Header: h}
}

// checkFiles compares the plan's output files with a folder of official ones: same files, same
// tensor names, same metadata.
func checkFiles(t *testing.T, p *Plan, dir string) {
	t.Helper()
	var planned []string
	for _, f := range p.OutputFiles {
		planned = append(planned, f.Path)
		official := readWeights(t, dir, f.Path).Header
		if got, want := outputNames(p, f), headerNames(official); !slices.Equal(got, want) {
			t.Errorf("%s holds\n%v, want\n%v", f.Path, got, want)
		}
		if !slices.Equal(f.Metadata, official.Metadata) {
			t.Errorf("%s has metadata %v, want %v", f.Path, f.Metadata, official.Metadata)
		}
	}
	slices.Sort(planned)
	paths, _ := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	if !slices.Equal(planned, paths) {
		t.Errorf("planned %v, want %v", planned, paths)
	}
}

// outputNames lists the tensors of an output file, sorted.
func outputNames(p *Plan, f OutputFile) []string {
	var names []string
	for _, i := range f.Units {
		for _, n := range encoder.ArrayNames() {
			names = append(names, p.Units[i].Path+"."+n)
		}
		for _, s := range p.Units[i].Siblings {
			names = append(names, s.Name)
		}
	}
	for _, s := range f.Plain {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// headerNames lists the tensors of a file, sorted.
func headerNames(h *safetensors.Header) []string {
	var names []string
	for _, s := range h.Tensors {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}
