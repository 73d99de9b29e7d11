package plan

import (
	"fmt"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"slices"
	"strings"
	"testing"
)

// checkReads fails for every weight of a unit that is read outside of it.
func checkReads(t *testing.T, who string, p *Plan, reads []catalog.Read) {
	t.Helper()
	for _, u := range p.Units {
		for _, a := range u.Attrs {
			module := catalog.Numberless(strings.TrimSuffix(a.Name, ".weight"))
			i := slices.IndexFunc(reads, func(r catalog.Read) bool { return r.Weight == module && r.IsOutside(u.Path) })
			if i >= 0 {
				t.Errorf("%s: %s is in unit %s, but %s reads it in %q", who, a.Name, u.Path, reads[i].Method, reads[i].Reader)
			}
		}
	}
}

// TestNoUnitIsReadOutside: a weight that a class reads outside of the unit's forward stays in BF16.
func TestNoUnitIsReadOutside(t *testing.T) {
	t.Parallel()
	reads, known := map[string][]catalog.Read{}, map[string]bool{}
	for line := range strings.Lines(string(readFile(t, "../catalog/reads.txt"))) {
		if class := strings.Fields(line)[0]; reads[class] == nil && class != "?" {
			reads[class] = catalog.FactsOf(class).Reads
		}
	}
	for _, c := range readClasses(t) {
		known[c.name] = true
		e := catalog.Find(c.entry)
		if len(reads[c.name]) == 0 || e.Refuse != nil {
			continue
		}
		tied := mustBeTied(e)
		opt := ownOptions(e)
		p := mustPlan(t, synthSource(e, c.model(e, tied), tied), opt)
		checkReads(t, e.ID+" ("+c.name+")", p, reads[c.name])
	}
	if len(known) < 100 || len(reads) < 100 {
		t.Errorf("%d classes and reads of %d: the lists are not whole", len(known), len(reads))
	}
	for name, list := range reads {
		if !known[name] {
			checkReads(t, name, derivedPlan(t, name, list), list)
		}
	}
}

// derivedPlan plans a model whose class alone is known, and the weights that are read; it has
// blocks, a head and an embedding under usual names as well.
func derivedPlan(t *testing.T, class string, reads []catalog.Read) *Plan {
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
	p, err := New(t.Context(), source([]WeightFile{m.file("model.safetensors")}, map[string]any{
		"architectures": []string{class}, "tie_word_embeddings": false,
	}), Options{})
	if err != nil {
		t.Fatalf("%s: %v", class, err)
	}
	return p
}

// TestNamesOfClasses: tensors get the module paths that transformers gives them for the class,
// shared, tied and normalizing weights are in no unit, and a class of transformers 5 alone that
// merges weights does not load what has them apart.
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
