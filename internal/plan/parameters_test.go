package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// fusedSource is a model with the experts of each layer in two tensors of these shapes.
func fusedSource(gateUp, down []int64) Source {
	m := newModel()
	m.weight("lm_head")
	m.weight("model.embed_tokens")
	for i := range 3 {
		layer := fmt.Sprintf("model.layers.%d.", i)
		for _, x := range []string{"q", "k", "v", "o"} {
			m.weight(layer + "self_attn." + x + "_proj")
		}
		m.weight(layer + "mlp.router")
		m.add(layer+"mlp.experts.down_proj", safetensors.BF16, down...)
		m.add(layer+"mlp.experts.gate_up_proj", safetensors.BF16, gateUp...)
		m.add(layer+"mlp.experts.gate_up_proj_bias", safetensors.BF16, gateUp[0], gateUp[1])
	}
	return source([]WeightFile{m.file("model.safetensors")}, map[string]any{"architectures": []string{"GptOssForCausalLM"},
		"model_type": "gpt_oss", "num_hidden_layers": 3, "num_local_experts": gateUp[0], "tie_word_embeddings": false})
}

// TestParameters checks which units fused experts become: one for a module, or one for each
// parameter or slice that is too large.
func TestParameters(t *testing.T) {
	t.Parallel()
	small := []int64{8, 64, 16}
	for name, c := range map[string]struct {
		gateUp, down []int64
		units        []string // of the experts of layer 1
		patterns     []string // of all experts
	}{
		"one unit": {small, []int64{8, 16, 32}, []string{"model.layers.1.mlp.experts: gate_up_proj down_proj"},
			[]string{`model\.layers\.\d+\.mlp\.experts`}},
		// 2,147,483,648 weights in both: one too many
		"a unit each": {[]int64{64, 4096, 4096}, []int64{64, 4096, 4096},
			[]string{"model.layers.1.mlp.experts.down_proj: ", "model.layers.1.mlp.experts.gate_up_proj: "},
			[]string{`model\.layers\.\d+\.mlp\.experts\.(gate_up_proj|down_proj)`}},
		// Llama 4 Maverick's: 10.7 and 5.4 billion weights
		"slices": {[]int64{128, 5120, 16384}, []int64{128, 8192, 5120},
			[]string{"model.layers.1.mlp.experts.down_proj.0: ", "model.layers.1.mlp.experts.down_proj.43: ", "model.layers.1.mlp.experts.down_proj.86: ",
				"model.layers.1.mlp.experts.gate_up_proj.0: ", "model.layers.1.mlp.experts.gate_up_proj.22: ", "model.layers.1.mlp.experts.gate_up_proj.44: ",
				"model.layers.1.mlp.experts.gate_up_proj.66: ", "model.layers.1.mlp.experts.gate_up_proj.88: ", "model.layers.1.mlp.experts.gate_up_proj.110: "},
			[]string{`model\.layers\.\d+\.mlp\.experts\.gate_up_proj\.(0|22|44|66|88|110)`, `model\.layers\.\d+\.mlp\.experts\.down_proj\.(0|43|86)`}},
	} {
		p := mustPlan(t, fusedSource(c.gateUp, c.down), Options{})
		checkWhole(t, p)
		var units, patterns []string
		for _, u := range p.Units {
			if strings.HasPrefix(u.Path, "model.layers.1.mlp.experts") {
				var attrs []string
				for _, a := range u.Attrs {
					attrs = append(attrs, a.Attr)
				}
				units = append(units, u.Path+": "+strings.Join(attrs, " "))
			}
			if u.NElems() > maxElems || u.Unholdable != "" {
				t.Errorf("%s: %s has %d weights", name, u.Path, u.NElems())
			}
		}
		for _, pat := range p.PatternDict {
			if strings.Contains(pat.Regex, "experts") {
				patterns = append(patterns, pat.Regex)
			}
		}
		slices.Sort(units)
		slices.Sort(c.units)
		if !slices.Equal(units, c.units) || !slices.Equal(patterns, c.patterns) || p.Version() != ParametersVersion {
			t.Errorf("%s: %s\n%q\n%q", name, p.Version(), units, patterns)
		}
		again := mustPlan(t, fusedSource(c.gateUp, c.down), Options{PatternDict: p.PatternDict})
		for i, u := range again.Units {
			if u.Path != p.Units[i].Path || !slices.Equal(u.Sizes(), p.Units[i].Sizes()) {
				t.Errorf("%s: the plan of its own dict has %s instead of %s", name, u.Path, p.Units[i].Path)
			}
		}
	}
}

// TestForOfficial checks that a plan for the official loader holds no parameters, and that a dict
// with parameters is refused for it.
func TestForOfficial(t *testing.T) {
	t.Parallel()
	src := fusedSource([]int64{8, 64, 16}, []int64{8, 16, 32})
	p := mustPlan(t, src, Options{For: OfficialReader})
	if p.HoldsParameters() || p.Version() != FormatVersion || len(p.Units) != 5 || len(p.Units[2].Attrs) != 4 {
		t.Errorf("%s, %d units, %v", p.Version(), len(p.Units), p.PatternDict)
	}
	dict := catalog.PatternDict{{Regex: `model\.layers\.\d+\.mlp\.experts`, Attrs: []string{"down_proj"}}}
	if p := mustPlan(t, src, Options{PatternDict: dict}); !p.HoldsParameters() {
		t.Error("a dict that names a parameter makes none")
	}
	want := map[string]hint.Hint{"dfloat11 can't fill parameters": hint.NoParameters, "none begins at row 0": hint.FirstRow}
	for says, opt := range map[string]Options{
		"dfloat11 can't fill parameters": {PatternDict: dict, For: OfficialReader},
		"none begins at row 0":           {PatternDict: catalog.PatternDict{{Regex: `model\.layers\.\d+\.mlp\.experts\.down_proj\.[1-3]`, Attrs: []string{}}}},
		"lies inside module":             {PatternDict: append(catalog.PatternDict{{Regex: `model\.layers\.\d+\.mlp\.experts\.down_proj`, Attrs: []string{}}}, dict...)},
		"has no tensor":                  {PatternDict: catalog.PatternDict{{Regex: `model\.layers\.\d+\.mlp`, Attrs: []string{"experts.down_proj"}}}},
	} {
		_, err := New(t.Context(), src, opt)
		r, ok := errors.AsType[*RefusedError](err)
		if h := want[says]; !ok || !strings.Contains(r.Detail, says) || h.Cause != "" && r.Hint != h {
			t.Errorf("%v: %v, want %q", opt.PatternDict, err, says)
		}
	}
}

// TestGateNextToUp checks that gate and up of an expert are neighbors in derived dicts, whatever
// their names.
func TestGateNextToUp(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"gate_proj up_proj down_proj", "w1 w3 w2", "fc1 fc3 fc2"} {
		m, want := newModel(), strings.Fields(c)
		for i := range 3 {
			for e := range 4 {
				for _, leaf := range slices.Sorted(slices.Values(want)) {
					m.weight(fmt.Sprintf("model.layers.%d.feed_forward.experts.%d.%s", i, e, leaf))
				}
			}
		}
		p := mustPlan(t, source([]WeightFile{m.file("model.safetensors")}, map[string]any{"model_type": "new"}), Options{})
		for i, a := range p.Units[0].Attrs {
			if leaf := catalog.Leaf(a.Attr); leaf != want[i%3] {
				t.Errorf("%s: weight %d is %s", c, i, a.Attr)
			}
		}
	}
}
