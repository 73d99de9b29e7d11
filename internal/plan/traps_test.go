package plan

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// outputOf describes the official output of a golden model.
func outputOf(t *testing.T, p *Plan, dir string) Finished {
	t.Helper()
	dict, err := ParsePatternDict(p.PatternDict.AppendJSON(nil, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	out := Finished{PatternDict: dict}
	for _, f := range p.OutputFiles {
		out.Files = append(out.Files, readWeights(t, dir, f.Path))
	}
	return out
}

// edit changes the tensors of one file of an output.
func edit(out *Finished, path string, change func([]safetensors.Tensor) []safetensors.Tensor) {
	i := slices.IndexFunc(out.Files, func(f WeightFile) bool { return f.Path == path })
	h := *out.Files[i].Header
	h.Tensors = change(slices.Clone(h.Tensors))
	out.Files[i].Header = &h
}

// without removes a tensor.
func without(name string) func([]safetensors.Tensor) []safetensors.Tensor {
	return func(ts []safetensors.Tensor) []safetensors.Tensor {
		return slices.DeleteFunc(ts, func(x safetensors.Tensor) bool { return x.Name == name })
	}
}

// with changes a tensor.
func with(name string, change func(*safetensors.Tensor)) func([]safetensors.Tensor) []safetensors.Tensor {
	return func(ts []safetensors.Tensor) []safetensors.Tensor {
		i := slices.IndexFunc(ts, func(x safetensors.Tensor) bool { return x.Name == name })
		change(&ts[i])
		return ts
	}
}

// traps lists the traps of docs/format.md §14 as changes of a good output.
var traps = []struct {
	name   string
	detail string // part of what is told
	change func(*Finished)
	alone  string // part of what is told without the plan; "" if that is nothing
}{
	{"attribute order differs from the encoding order", "dict is not the one that was encoded", func(o *Finished) {
		slices.Reverse(o.PatternDict[2].Attrs)
	}, ""},
	{"norm missing from the unit file", "stored nowhere", func(o *Finished) {
		edit(o, layer0, without("model.layers.0.input_layernorm.weight"))
	}, ""},
	{"unit file missing", "neither encoded nor plain", func(o *Finished) {
		o.Files = slices.DeleteFunc(o.Files, func(f WeightFile) bool { return f.Path == layer0 })
	}, ""},
	{"plain tensor under a wrong last name", "the source has no such tensor", func(o *Finished) {
		edit(o, layer0, with("model.layers.0.input_layernorm.weight", func(x *safetensors.Tensor) {
			x.Name = "model.layers.0.input_layernorm.scale"
		}))
	}, ""},
	{"old shard in the folder", "and another file", func(o *Finished) {
		o.Files = append(o.Files, tiny().file("model-00001-of-00002.safetensors"))
	}, "and another file"},
	{"old shard with the same tensors", "model-00001-of-00002.safetensors and another file", func(o *Finished) {
		m := newModel()
		m.add("model.layers.0.input_layernorm.weight", safetensors.BF16, 8)
		o.Files = append(o.Files, m.file("model-00001-of-00002.safetensors"))
	}, "and another file"},
	{"plain tensor in another type", "F16, the source has BF16", func(o *Finished) {
		edit(o, layer0, with("model.layers.0.input_layernorm.weight", func(x *safetensors.Tensor) { x.DType = "F16" }))
	}, ""},
	{"plain tensor in another shape", "another shape", func(o *Finished) {
		edit(o, layer0, with("model.layers.0.input_layernorm.weight", func(x *safetensors.Tensor) { x.Shape = []int64{1, 48} }))
	}, ""},
	{"unit under a wrong prefix", "the source has no such tensor", func(o *Finished) {
		edit(o, layer0, func(ts []safetensors.Tensor) []safetensors.Tensor {
			for i := range ts {
				ts[i].Name = "language_" + ts[i].Name
			}
			return ts
		})
	}, "no pattern matches it"},
	{"pattern missing", "dict is not the one", func(o *Finished) { o.PatternDict = o.PatternDict[:2] }, "no pattern matches it"},
	{"pattern that does not match fully", "dict is not the one", func(o *Finished) { o.PatternDict[2].Regex = `layers\.\d+` }, "it matches no module"},
	{"two patterns match one unit", "dict is not the one", func(o *Finished) {
		o.PatternDict = append(o.PatternDict, Pattern{`lm_hea.`, []string{}})
	}, "matches two patterns"},
	{"split_positions missing", "it has no split_positions", func(o *Finished) {
		edit(o, layer0, without("model.layers.0.split_positions"))
	}, "it has no split_positions"},
	{"output_positions missing", "it has no output_positions", func(o *Finished) {
		edit(o, layer0, without("model.layers.0.output_positions"))
	}, "it has no output_positions"},
	{"output_positions as U32", "output_positions is U32", func(o *Finished) {
		edit(o, layer0, with("model.layers.0.output_positions", func(x *safetensors.Tensor) { x.DType = "U32" }))
	}, "output_positions is U32"},
	{"too many tables", "luts is U8 [19 256]", func(o *Finished) {
		edit(o, layer0, with("model.layers.0.luts", func(x *safetensors.Tensor) { x.Shape = []int64{19, 256} }))
	}, "luts is U8 [19 256]"},
	{"another number of weights", "another number of weights", func(o *Finished) {
		edit(o, layer0, with("model.layers.0.sign_mantissa", func(x *safetensors.Tensor) { x.Shape = []int64{7} }))
	}, ""},
	{"another number of attributes", "does not fit the number of attributes", func(o *Finished) {
		edit(o, layer0, with("model.layers.0.split_positions", func(x *safetensors.Tensor) { x.Shape = []int64{1} }))
	}, ""},
}

const layer0 = "model_layers_0.safetensors"

// TestTraps changes a good official output into each trap and expects the check to name it.
func TestTraps(t *testing.T) {
	src, dict := readGolden(t, "bias_f32")
	p := mustPlan(t, src, Options{PatternDict: dict})
	dir := filepath.Join(goldenDir, "bias_f32", "multi")
	alone := func(out Finished) []Problem {
		problems, err := CheckForeign(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		return problems
	}
	if good := outputOf(t, p, dir); len(Check(good, p))+len(alone(good)) > 0 {
		t.Fatalf("the official output has problems: %v %v", Check(good, p), alone(good))
	}
	for _, trap := range traps {
		t.Run(trap.name, func(t *testing.T) {
			out := outputOf(t, p, dir)
			trap.change(&out)
			has := func(problems []Problem, words string) bool {
				return slices.ContainsFunc(problems, func(x Problem) bool { return strings.Contains(x.Name+": "+x.Detail, words) })
			}
			if problems := Check(out, p); !has(problems, trap.detail) {
				t.Errorf("got %v, want %s", problems, trap.detail)
			}
			if problems := alone(out); trap.alone == "" && len(problems) > 0 || trap.alone != "" && !has(problems, trap.alone) {
				t.Errorf("without the plan: got %v, want %q", problems, trap.alone)
			}
		})
	}
}

// TestTrapsComeInOneOrder: the first problem is what a user is told, so it is the same each time.
func TestTrapsComeInOneOrder(t *testing.T) {
	src, dict := readGolden(t, "bias_f32")
	p := mustPlan(t, src, Options{PatternDict: dict})
	out := outputOf(t, p, filepath.Join(goldenDir, "bias_f32", "multi"))
	m := newModel()
	for _, name := range strings.Split("jihgfedcba", "") {
		m.weight(name)
	}
	out.Files = append(out.Files, m.file("more.safetensors"))
	var unknown string
	for _, x := range Check(out, p) {
		if x.Detail == "the source has no such tensor" {
			unknown += x.Name[:1]
		}
	}
	if unknown != "abcdefghij" {
		t.Errorf("in the order %s", unknown)
	}
}
