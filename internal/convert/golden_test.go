package convert_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/forward"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

const goldenE2E = "../../testdata/golden/e2e"

// goldenModels are the whole models that the official compress_model converted.
var goldenModels = []string{"bias_f32", "qknorm"}

// openLocal opens a folder and plans its conversion.
func openLocal(t *testing.T, dir string, opt plan.Options) (model.Source, *model.Model, *plan.Plan) {
	t.Helper()
	src, known, err := model.OpenLocal(t.Context(), dir, opt, 0)
	shared.Must(t, err)
	p, err := plan.New(t.Context(), known.Listing, opt)
	shared.Must(t, err)
	return src, known, p
}

// convertLocal converts a folder into a new one with the given options.
func convertLocal(t *testing.T, dir, out string, opt plan.Options, change func(*convert.Options)) (*convert.Report, error) {
	t.Helper()
	src, known, p := openLocal(t, dir, opt)
	o := convert.Options{Source: src, Model: known, Plan: p, OutDir: out, Memory: budget.ForConversion(0, 2), Means: forward.Means{Workers: 2}, Version: "test"}
	if change != nil {
		change(&o)
	}
	return converted(t.Context(), o)
}

func goldenDict(t *testing.T, known string) catalog.PatternDict {
	t.Helper()
	d, err := catalog.ParsePatternDict(shared.Read(t, filepath.Join(goldenE2E, known, "pattern_dict.json")))
	shared.Must(t, err)
	return d
}

// TestGoldenModels checks that every unit file has the official compressor's bytes, for any number
// of workers, that the remainder holds the same tensors, and that a single file has the same bytes.
func TestGoldenModels(t *testing.T) {
	t.Parallel()
	for _, known := range goldenModels {
		convert := func(layout catalog.Layout, workers int) (out string) {
			out = t.TempDir()
			opt := plan.Options{PatternDict: goldenDict(t, known), Layout: layout}
			_, err := convertLocal(t, filepath.Join(goldenE2E, known, "source"), out, opt, func(o *convert.Options) { o.Workers = workers })
			shared.Must(t, err)
			return out
		}
		for _, workers := range []int{1, 3} {
			out := convert("", workers)
			if left, _ := filepath.Glob(filepath.Join(out, ".*")); len(left) > 0 || !strings.Contains(string(shared.Read(t, filepath.Join(out, "config.json"))), `"dfloat11_config"`) {
				t.Errorf("%s: %q are left behind, or the config is not one of DF11", known, left)
			}
			compareUnits(t, filepath.Join(goldenE2E, known, "multi"), out)
			compareTensors(t, filepath.Join(goldenE2E, known, "multi", "model.safetensors"), filepath.Join(out, "remainder.safetensors"))
		}
		want := shared.Read(t, filepath.Join(goldenE2E, known, "single", "model.safetensors"))
		if !bytes.Equal(want, shared.Read(t, filepath.Join(convert(catalog.TransformersSingle, 2), "df11.safetensors"))) {
			t.Errorf("%s: single file differs from the official one", known)
		}
	}
}

// compareUnits compares every unit file.
func compareUnits(t *testing.T, want, got string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(want, "*.safetensors"))
	if err != nil || len(files) < 2 {
		t.Fatalf("golden files: %v %v", files, err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		if name == "model.safetensors" {
			continue
		}
		if !bytes.Equal(shared.Read(t, f), shared.Read(t, filepath.Join(got, name))) {
			t.Errorf("%s differs from the official file", name)
		}
	}
}

// compareTensors compares the tensors of two files, not their headers' order.
func compareTensors(t *testing.T, want, got string) {
	t.Helper()
	a, b := tensorsOf(t, want), tensorsOf(t, got)
	if len(a) != len(b) {
		t.Errorf("%d tensors, want %d", len(b), len(a))
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || !bytes.Equal(x, y) {
			t.Errorf("tensor %s is missing or differs", name)
		}
	}
}

func tensorsOf(t *testing.T, file string) map[string][]byte {
	t.Helper()
	m := map[string][]byte{}
	for _, x := range tensors(t, shared.Read(t, file)) {
		m[x.Name+" "+x.DType] = x.Data
	}
	return m
}

// verifyLocal checks a folder against its source at one level.
func verifyLocal(t *testing.T, df11, source string, level convert.Level) (*convert.VerifyReport, error) {
	t.Helper()
	d, err := model.OpenDF11Local(t.Context(), df11, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	src, known, p := openLocal(t, source, plan.Options{PatternDict: d.Dict})
	return convert.Verify(t.Context(), convert.VerifyOptions{
		Pair: back.Pair{DF11: d, Source: src, Model: known, Plan: p}, Level: level, Means: forward.Means{Workers: 2}, WorkDir: t.TempDir(),
	})
}

// TestVerifyLevels checks that every level accepts a good folder, and the official compressor's own
// output.
func TestVerifyLevels(t *testing.T) {
	t.Parallel()
	for _, known := range goldenModels {
		source, out := filepath.Join(goldenE2E, known, "source"), t.TempDir()
		if _, err := convertLocal(t, source, out, plan.Options{PatternDict: goldenDict(t, known)}, nil); err != nil {
			t.Fatal(err)
		}
		for _, level := range []convert.Level{convert.LevelStructure, convert.LevelProof, convert.LevelFull} {
			for _, folder := range []string{out, filepath.Join(goldenE2E, known, "multi")} {
				if r, err := verifyLocal(t, folder, source, level); err != nil || !r.OK {
					t.Errorf("%s %s level %s: %v", known, folder, level, err)
				}
			}
		}
	}
}

// TestVerifyFindsOneBit flips one bit in any byte of a unit's code or sign_mantissa, or in a copied
// tensor.
func TestVerifyFindsOneBit(t *testing.T) {
	t.Parallel()
	source, out := filepath.Join(goldenE2E, "qknorm", "source"), t.TempDir()
	if _, err := convertLocal(t, source, out, plan.Options{PatternDict: goldenDict(t, "qknorm")}, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(out, "model_layers_1.safetensors")
	good := shared.Read(t, file)
	for _, x := range tensors(t, good) {
		if len(x.Data) == 0 {
			continue
		}
		bad := bytes.Clone(good)
		tensor(t, bad, x.Name)[len(x.Data)/2] ^= 0x04
		shared.Must(t, os.WriteFile(file, bad, 0o666))
		for _, level := range []convert.Level{convert.LevelFull, convert.LevelProof} {
			r, err := verifyLocal(t, out, source, level)
			if err == nil && len(r.Warnings) == 0 && !unread(x.Name, level) {
				t.Errorf("level %s does not see a flipped bit in %s", level, x.Name)
			}
		}
	}
}

// unread reports whether a level may overlook a byte of a tensor: decoding alone does not read
// every byte of these, and a proof does not compare with the manifest's hashes.
func unread(name string, level convert.Level) bool {
	return level == convert.LevelProof && (strings.HasSuffix(name, ".gaps") || strings.HasSuffix(name, ".luts"))
}
