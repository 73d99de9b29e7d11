package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// checkpointOf is a model of three layers that a catalog entry is for: of qwen3_moe, the first of
// them is dense and the others have four experts.
func checkpointOf(modelType string) *model {
	m := newModel()
	m.add("model.embed_tokens.weight", safetensors.BF16, 64, 16)
	m.add("lm_head.weight", safetensors.BF16, 64, 16)
	for i := range 3 {
		l := fmt.Sprintf("model.layers.%d.", i)
		for _, a := range []string{"q_proj", "k_proj", "v_proj", "o_proj"} {
			m.weight(l + "self_attn." + a)
		}
		for _, a := range []string{"gate_proj", "up_proj", "down_proj"} {
			if i == 0 || modelType == "llama" {
				m.weight(l + "mlp." + a)
				continue
			}
			for e := range 4 {
				m.weight(fmt.Sprintf("%smlp.experts.%d.%s", l, e, a))
			}
		}
	}
	return m
}

// drop removes the tensors below a path.
func (m *model) drop(path string) {
	var kept []string
	for _, n := range m.names {
		if n != path && !strings.HasPrefix(n, path+".") {
			kept = append(kept, n)
		}
	}
	m.names = kept
}

// TestIncomplete checks that, for catalog entries, tensors that are missing or have another type
// than config and headers say are refused by name, unless the catalog calls them optional. A
// given dict may leave them out, and the plan warns of blocks that the source lacks.
func TestIncomplete(t *testing.T) {
	class := map[string]string{"llama": "LlamaForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM"}
	for _, c := range []struct {
		name, modelType string
		change          func(m *model, config map[string]any)
		want            string // part of the refusal; "" = planned
	}{
		{"whole", "llama", func(*model, map[string]any) {}, ""},
		{"whole with experts", "qwen3_moe", func(*model, map[string]any) {}, ""},
		{"a layer left out", "llama", func(m *model, _ map[string]any) { m.drop("model.layers.1") }, "no tensor of model.layers.1, but there is model.layers.2"},
		{"fewer layers than the config counts", "llama", func(_ *model, c map[string]any) { c["num_hidden_layers"] = 5 },
			"no tensor of model.layers.3, but config.json counts 5 layers"},
		{"a layer very far behind the last", "llama", func(m *model, _ map[string]any) {
			for i, n := range m.names {
				m.names[i] = strings.Replace(n, "layers.2.", "layers.99999999999999999999.", 1)
				m.types[m.names[i]], m.dims[m.names[i]] = m.types[n], m.dims[n]
			}
		}, "no tensor of model.layers.2, but there is"},
		{"an expert very far behind the last", "qwen3_moe", func(m *model, _ map[string]any) {
			for _, a := range []string{"gate_proj", "up_proj", "down_proj"} {
				m.weight("model.layers.2.mlp.experts.9223372036854775807." + a)
			}
		}, "no tensor model.layers.2.mlp.experts."},
		{"two modules a layer", "llama", func(_ *model, c map[string]any) { c["num_hidden_layers"], c["num_layers"] = 6, 3 }, ""},
		{"layers behind the last", "llama", func(_ *model, c map[string]any) { c["num_hidden_layers"] = 2 }, ""},
		{"no k_proj", "qwen3_moe", func(m *model, _ map[string]any) { m.drop("model.layers.1.self_attn.k_proj") }, "no tensor model.layers.1.self_attn.k_proj.weight"},
		{"F16 k_proj", "qwen3_moe", func(m *model, _ map[string]any) { m.types["model.layers.1.self_attn.k_proj.weight"] = "F16" }, "k_proj.weight is F16"},
		{"F16 in an optional attribute", "qwen3_moe", func(m *model, _ map[string]any) { m.types["model.layers.2.mlp.experts.1.up_proj.weight"] = "F16" }, "up_proj.weight is F16"},
		{"3-D k_proj", "qwen3_moe", func(m *model, _ map[string]any) { m.dims["model.layers.1.self_attn.k_proj.weight"] = []int64{2, 4, 16} }, "3 dimensions"},
		{"half an expert", "qwen3_moe", func(m *model, _ map[string]any) { m.drop("model.layers.2.mlp.experts.1.up_proj") }, "no tensor model.layers.2.mlp.experts.1.up_proj.weight"},
		{"no such expert", "qwen3_moe", func(m *model, _ map[string]any) { m.drop("model.layers.2.mlp.experts.1") }, "no tensor model.layers.2.mlp.experts.1.gate_proj.weight"},
		{"fewer experts than the config counts", "qwen3_moe", func(m *model, c map[string]any) {
			m.drop("model.layers.2.mlp.experts.3")
			c["num_experts"] = 4
		}, "model.layers.2.mlp.experts.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := checkpointOf(c.modelType)
			config := map[string]any{"model_type": c.modelType, "architectures": []string{class[c.modelType]}, "num_hidden_layers": 3, "tie_word_embeddings": false}
			c.change(m, config)
			src := source([]WeightFile{m.file("model.safetensors")}, config)
			p, err := New(t.Context(), src, Options{})
			var refused *RefusedError
			switch {
			case c.want == "" && (err != nil || p.Entry == ""):
				t.Errorf("entry %+v, %v", p, err)
			case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || refused.Hint.String() == ""):
				t.Errorf("got %v, want …%s…", err, c.want)
			}
			given := catalog.PatternDict{{Regex: `model\.layers\.\d+`, Attrs: []string{"self_attn.q_proj"}}}
			if p, err = New(t.Context(), src, Options{PatternDict: given}); err != nil {
				t.Fatalf("with a given dict: %v", err)
			}
			isBlock := strings.Contains(c.want, "no tensor of model.layers.")
			if warns(p, "the source holds no tensor of ") != isBlock || isBlock && !warns(p, c.want) {
				t.Errorf("with a given dict: %q, want …%s…", p.Warnings, c.want)
			}
		})
	}
}

// TestGivenDictLeavesBlocksOut checks that a plan says which blocks a given dict has no module in, and how
// much of the model stays BF16 for that. What a dict leaves out of a block that has a module, and the
// embedding, aren't blocks.
func TestGivenDictLeavesBlocksOut(t *testing.T) {
	m := checkpointOf("llama")
	src := source([]WeightFile{m.file("model.safetensors")}, map[string]any{"model_type": "llama",
		"architectures": []string{"LlamaForCausalLM"}, "num_hidden_layers": 3, "tie_word_embeddings": false})
	var all, left int64
	for _, x := range src.Weights[0].Header.Tensors {
		all += x.End - x.Begin
		if len(x.Shape) == 2 && (strings.HasPrefix(x.Name, "model.layers.0.") || strings.HasPrefix(x.Name, "model.layers.2.")) {
			left += x.End - x.Begin
		}
	}
	for regex, want := range map[string]string{
		`model\.layers\.\d+`: "",
		`model\.layers\.1`:   fmt.Sprintf("the pattern dict leaves out 2 blocks (model.layers.0, model.layers.2), so %d%% of the model stays BF16", 100*left/all),
	} {
		opt := Options{PatternDict: catalog.PatternDict{{Regex: regex, Attrs: []string{"self_attn.q_proj"}}}}
		if p := mustPlan(t, src, opt); warns(p, "leaves out") != (want != "") || !warns(p, want) && want != "" {
			t.Errorf("%s: %q, want %q", regex, p.Warnings, want)
		}
		opt.Finished = true
		if p := mustPlan(t, src, opt); warns(p, "leaves out") {
			t.Errorf("%s of a finished model: %q", regex, p.Warnings)
		}
	}
}

// warns says whether a warning of a plan holds these words.
func warns(p *Plan, words string) bool {
	return slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, words) })
}
