package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// largeModel is a real model by its names and shapes.
type largeModel struct {
	name, config string
	m            *model
}

func (l *largeModel) plan(t *testing.T) *Plan {
	t.Helper()
	src := source([]WeightFile{l.m.file("model.safetensors")}, map[string]any{})
	src.Config = []byte(l.config)
	p := mustPlan(t, src, Options{})
	checkWhole(t, p)
	return p
}

// readLarge reads the models of testdata/large.txt, or only those with the given names.
func readLarge(t *testing.T, names ...string) (list []largeModel) {
	t.Helper()
	wanted := false
	for line := range strings.Lines(string(world.Read(t, filepath.Join("testdata", "large.txt")))) {
		if head, ok := strings.CutPrefix(line, "= "); ok {
			name, config, _ := strings.Cut(head, " ")
			if wanted = len(names) == 0 || slices.Contains(names, name); wanted {
				list = append(list, largeModel{name, config, newModel()})
			}
			continue
		}
		if !wanted {
			continue
		}
		f := strings.Fields(line)
		for _, tensor := range world.Unbrace(t, f[0]) {
			list[len(list)-1].m.add(tensor, safetensors.BF16, world.Shape(t, f[1])...)
		}
	}
	return list
}

// TestLargeModels plans the models of testdata/large.txt, where most have layers that exceed the
// format's limit, and compares what is compressed with a golden file.
func TestLargeModels(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for _, l := range readLarge(t) {
		p := l.plan(t)
		fmt.Fprintf(&b, "== %s: entry %q, split %v\n%d units with %.1f%% of %d bytes, in %d files\n", l.name, p.Entry, p.Split, len(p.Units),
			100*float64(p.UnitBytes())/float64(p.UnitBytes()+p.PlainBytes()), p.UnitBytes()+p.PlainBytes(), len(p.OutputFiles))
		checkShared(t, p)
		for _, pat := range p.PatternDict {
			fmt.Fprintf(&b, "%s: %.100s\n", pat.Regex, strings.Join(pat.Attrs, " "))
		}
		for _, u := range p.Units {
			if u.Unholdable != "" {
				t.Errorf("%s: %s is %s", l.name, u.Path, u.Unholdable)
			}
		}
	}
	compareGolden(t, filepath.Join("testdata", "large-plans.txt"), b.Bytes())
}

// checkShared checks that a plan makes a number of files that a folder can have. Files that units
// share are of one layer, and at most 5 GB before they're encoded.
func checkShared(t *testing.T, p *Plan) {
	t.Helper()
	if len(p.OutputFiles) > 1000 {
		t.Errorf("%d files for %d units", len(p.OutputFiles), len(p.Units))
	}
	for _, f := range p.OutputFiles {
		var nBytes int64
		for _, i := range f.Units {
			u := p.Units[i]
			nBytes += sum(u.Attrs, Tensor.SpoolBytes) + sum(u.Siblings, Tensor.SpoolBytes)
			if u.File != f.Path || layerOf(u.Path) != layerOf(p.Units[f.Units[0]].Path) {
				t.Errorf("%s is in %s, with %s", u.Path, f.Path, p.Units[f.Units[0]].Path)
			}
		}
		if len(f.Units) > 1 && (nBytes > maxShardBytes || len(p.Units) <= maxUnitFiles) {
			t.Errorf("%s holds %d units with %d bytes", f.Path, len(f.Units), nBytes)
		}
	}
}

// TestNoSplitBelowLimit checks that GLM-4.5-Air with narrower weights keeps one unit per layer.
func TestNoSplitBelowLimit(t *testing.T) {
	t.Parallel()
	l := readLarge(t, "GLM-4.5-Air")[0]
	for n, d := range l.m.dims {
		l.m.dims[n] = append([]int64{max(d[0]/16, 1)}, d[1:]...)
	}
	p := l.plan(t)
	if p.Split || len(p.Units) != 48 || p.PatternDict[2].Regex != `model\.layers\.0` || p.PatternDict[3].Regex != `model\.layers\.([1-9]|[1-3][0-9]|4[0-5])` {
		t.Errorf("split %v, %d units, dict %v", p.Split, len(p.Units), p.PatternDict[2:])
	}
	if n := len(p.PatternDict[3].Attrs); n != 4+128*3+3 {
		t.Errorf("%d attributes in a layer with experts", n)
	}
}

// TestSourcesOfOneFile checks that to name the sources of a file takes memory in proportion to its
// tensors, also if it holds thousands of units.
func TestSourcesOfOneFile(t *testing.T) {
	l := readLarge(t, "dots.llm1")[0]
	src := source([]WeightFile{l.m.file("model.safetensors")}, map[string]any{})
	src.Config = []byte(l.config)
	p := mustPlan(t, src, Options{Layout: catalog.TransformersSingle})
	alloc.Within(t, 1<<20+200*int64(len(l.m.names)), func() {
		if got := p.OutputSources(); len(got) != 1 || !slices.Equal(got[p.OutputFiles[0].Path], []int{0}) {
			t.Errorf("made from %v", got)
		}
	})
}

// TestPlansEndWithTheirContext checks that a plan ends where it is when the program is asked to
// end, not after its last tensor.
func TestPlansEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	for name, opt := range map[string]Options{"derived": {}, "given": {PatternDict: tinyDict()}} {
		if p, err := New(ctx, twoShards(false), opt); p != nil || !errors.Is(err, stopped) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
