package model

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// goldenModel is a model from the official compressor, next to its source.
const goldenModel = "../../testdata/golden/e2e/bias_f32"

// goldenOutput opens the official output and plans it again from its source.
func goldenOutput(t *testing.T) (*DF11, *plan.Plan) {
	t.Helper()
	d, err := OpenDF11Local(t.Context(), filepath.Join(goldenModel, "multi"), 0)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	src, m, err := OpenLocal(t.Context(), filepath.Join(goldenModel, "source"), plan.Options{}, 0)
	must(t, err)
	defer src.Close()
	p, err := plan.New(t.Context(), m.Listing, plan.Options{PatternDict: d.Dict})
	must(t, err)
	return d, p
}

// with changes a tensor.
func with(name string, change func(*Stored)) func(*DF11) {
	return func(d *DF11) {
		x := d.tensors[name]
		change(&x)
		delete(d.tensors, name)
		d.tensors[x.Name] = x
	}
}

// without removes a tensor.
func without(name string) func(*DF11) { return func(d *DF11) { delete(d.tensors, name) } }

const (
	layer0 = "model_layers_0.safetensors"
	norm0  = "model.layers.0.input_layernorm.weight"
)

// traps lists the traps of docs/format.md §14 as changes of a good output.
var traps = []struct {
	name   string
	detail string // part of the problem
	change func(*DF11)
	alone  string // part of the problem without the plan; "" for none
}{
	{"attribute order differs from the encoding order", "dict differs from the plan's", func(d *DF11) {
		d.Dict = slices.Clone(d.Dict)
		d.Dict[2].Attrs = slices.Clone(d.Dict[2].Attrs)
		slices.Reverse(d.Dict[2].Attrs)
	}, ""},
	{"norm missing from the unit file", "stored nowhere", without(norm0), ""},
	{"unit file missing", "neither encoded nor plain", func(d *DF11) {
		for name, x := range d.tensors {
			if x.File == layer0 {
				delete(d.tensors, name)
			}
		}
	}, ""},
	{"plain tensor under a wrong last name", "the source has no such tensor", with(norm0, func(x *Stored) {
		x.Name = "model.layers.0.input_layernorm.scale"
	}), ""},
	{"plain tensor in another type", "F16, the source has BF16", with(norm0, func(x *Stored) { x.DType = "F16" }), ""},
	{"plain tensor in another shape", "another shape", with(norm0, func(x *Stored) { x.Shape = []int64{1, 48} }), ""},
	{"unit under a wrong prefix", "the source has no such tensor", func(d *DF11) {
		for _, name := range d.Tensors() {
			if x := d.tensors[name]; x.File == layer0 {
				delete(d.tensors, name)
				d.tensors["language_"+name] = x
			}
		}
	}, "no pattern matches it"},
	{"pattern missing", "dict differs", func(d *DF11) { d.Dict = d.Dict[:2] }, "no pattern matches it"},
	{"pattern that does not match fully", "dict differs", func(d *DF11) {
		d.Dict = slices.Clone(d.Dict)
		d.Dict[2].Regex = `layers\.\d+`
	}, "it matches no module"},
	{"two patterns match one unit", "dict differs", func(d *DF11) {
		d.Dict = append(slices.Clip(d.Dict), catalog.Pattern{Regex: `lm_hea.`, Attrs: []string{}})
	}, "matches two patterns"},
	{"split_positions missing", "it has no split_positions", without("model.layers.0.split_positions"), "it has no split_positions"},
	{"output_positions missing", "it has no output_positions", without("model.layers.0.output_positions"), "it has no output_positions"},
	{"output_positions as U32", "output_positions is U32", with("model.layers.0.output_positions", func(x *Stored) { x.DType = "U32" }), "output_positions is U32"},
	{"too many tables", "luts is U8 [19 256]", with("model.layers.0.luts", func(x *Stored) { x.Shape = []int64{19, 256} }), "luts is U8 [19 256]"},
	{"another number of weights", "as many weights as the source", with("model.layers.0.sign_mantissa", func(x *Stored) { x.Shape = []int64{7} }), ""},
	{"another number of attributes", "fit the number of attributes", with("model.layers.0.split_positions", func(x *Stored) { x.Shape = []int64{1} }), ""},
}

// TestTraps changes a good official output into each trap and checks that the problem names it.
func TestTraps(t *testing.T) {
	check := func(t *testing.T, d *DF11, p *plan.Plan) (problems, alone []Problem) {
		t.Helper()
		alone, err := d.ProblemsAlone(t.Context())
		must(t, err)
		return d.Problems(p), alone
	}
	good, p := goldenOutput(t)
	if problems, alone := check(t, good, p); len(problems)+len(alone) > 0 {
		t.Fatalf("the official output has problems: %v %v", problems, alone)
	}
	for _, trap := range traps {
		t.Run(trap.name, func(t *testing.T) {
			d, p := goldenOutput(t)
			trap.change(d)
			has := func(problems []Problem, words string) bool {
				return slices.ContainsFunc(problems, func(x Problem) bool { return strings.Contains(x.Name+": "+x.Detail, words) })
			}
			problems, alone := check(t, d, p)
			if !has(problems, trap.detail) {
				t.Errorf("got %v, want %s", problems, trap.detail)
			}
			if trap.alone == "" && len(alone) > 0 || trap.alone != "" && !has(alone, trap.alone) {
				t.Errorf("without the plan: got %v, want %q", alone, trap.alone)
			}
		})
	}
}

// TestOldShardInTheFolder checks that a tensor in two weight files is refused and both are named,
// because a loader reads every weight file of a folder.
func TestOldShardInTheFolder(t *testing.T) {
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join(goldenModel, "multi"))))
	h, err := safetensors.NewHeader(nil, []safetensors.Entry{{Name: norm0, DType: safetensors.BF16, Shape: []int64{8}}})
	must(t, err)
	old := filepath.Join(dir, "model-00001-of-00002.safetensors")
	must(t, os.WriteFile(old, append(bytes.Clone(h.Bytes()), make([]byte, 16)...), 0o644))
	_, err = OpenDF11Local(t.Context(), dir, 0)
	var invalid *InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), norm0) ||
		!strings.Contains(err.Error(), layer0) || !strings.Contains(err.Error(), filepath.Base(old)) {
		t.Errorf("got %v", err)
	}
}
