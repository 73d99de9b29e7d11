package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestDerivedLeavesReads checks that a derived dict leaves weights in BF16 that the class reads
// outside of their modules. Otherwise [New] would refuse it.
func TestDerivedLeavesReads(t *testing.T) {
	t.Parallel()
	n, last := 0, ""
	for line := range strings.Lines(string(world.Read(t, "../catalog/reads.txt"))) {
		if class := strings.Fields(line)[0]; class != last && class != "?" {
			last = class
			n++
			derivedPlan(t, class, catalog.FactsOf(class).Reads)
		}
	}
	if n < 100 {
		t.Errorf("reads of %d classes: the list isn't whole", n)
	}
}

// derivedPlan plans a model whose class alone is known, and the weights that are read; it has
// blocks, a head and an embedding under usual names as well.
func derivedPlan(t *testing.T, class string, reads []catalog.Read) {
	t.Helper()
	m := newModel()
	for _, r := range reads {
		for i := range 2 {
			m.weight(strings.ReplaceAll(r.Weight, "#", fmt.Sprint(i)))
		}
	}
	for i := range 2 {
		m.weight(fmt.Sprintf("model.layers.%d.mlp.up_proj", i))
	}
	for _, name := range []string{"lm_head", "model.embed_tokens"} {
		m.weight(name)
	}
	_, err := New(t.Context(), source([]WeightFile{m.file("model.safetensors")}, map[string]any{
		"architectures": []string{class}, "tie_word_embeddings": false,
	}), Options{})
	if err != nil {
		t.Errorf("%s: %v", class, err)
	}
}

// TestNamesOfClasses checks that tensors get transformers' module paths for the class, that shared,
// tied, and normalizing weights are in no unit, and that a class that merges weights, which only
// transformers 5 has, doesn't load them apart.
func TestNamesOfClasses(t *testing.T) {
	for class, c := range map[string]struct{ in, unit, loads string }{
		"FuyuForCausalLM":                    {"language_model.model.layers.#.mlp.up_proj", "model.language_model.layers.0", "untested"},
		"Zamba2ForCausalLM":                  {"model.layers.#.mamba.in_proj", "model.layers.0", "untested"},
		"Glm4MoeLiteForCausalLM":             {"model.layers.#.mlp.experts.0.up_proj", "model.layers.0", "no"},
		"Qwen3_5MoeForConditionalGeneration": {"model.language_model.layers.#.self_attn.q_proj", "model.language_model.layers.0", "untested"},
	} {
		m := newModel()
		for _, name := range []string{c.in, catalog.Parent(catalog.Parent(c.in)) + ".shared_transformer.q", catalog.Parent(catalog.Parent(c.in)) + ".q_norm"} {
			for i := range 2 {
				m.weight(strings.ReplaceAll(name, "#", fmt.Sprint(i)))
			}
		}
		p := mustPlan(t, source([]WeightFile{m.file("model.safetensors")}, map[string]any{"architectures": []string{class}}), Options{})
		if u := p.Units[0]; u.Path != c.unit || len(u.Attrs) != 1 || string(p.Readers[0].Loads) != c.loads {
			t.Errorf("%s: unit %s of %d, %s", class, u.Path, len(u.Attrs), p.Readers[0].Loads)
		}
	}
}
