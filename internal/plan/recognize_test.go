package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// TestUnfilled checks that facts about a class apply to every dict, from anyone. A dict with
// modules that no reader fills is refused, or accepted on request. Then the plan calls no reader
// compatible.
func TestUnfilled(t *testing.T) {
	for _, c := range []struct{ entry, class, modelType, why string }{
		{"exaone", "ImageGPTForCausalImageModeling", "imagegpt", "is of class Conv1D, not Linear"},
		{"exaone", "GPT2DoubleHeadsModel", "exaone", "is of class Conv1D, not Linear"},
		{"exaone", "GPT2DoubleHeadsModel", "gpt2", "is of class Conv1D, not Linear"},
		{"llama-untied-escaped", "Zamba2ForCausalLM", "llama", ""},
	} {
		e := catalog.Find(c.entry)
		src := synth(t, e, false)
		own := mustPlan(t, src, Options{}).PatternDict
		src.Config = fmt.Appendf(nil, `{"architectures": [%q], "model_type": %q, "num_hidden_layers": 3, "tie_word_embeddings": false}`, c.class, c.modelType)
		for name, opt := range map[string]Options{
			"given": {PatternDict: own}, "by an entry": {Like: c.entry}, "of a finished model": {PatternDict: own, Like: c.entry},
		} {
			_, err := New(t.Context(), src, opt)
			r, refused := errors.AsType[*RefusedError](err)
			if refused != (c.why != "") || refused && (!strings.Contains(r.Detail, c.why) || !strings.Contains(r.Hint.String(), "--unfilled")) {
				t.Errorf("%s, %s: %v", c.class, name, err)
			}
			opt.Unfilled = true
			if p := mustPlan(t, src, opt); len(p.Unfilled) > 0 != refused || refused && p.Readers[0].Loads != Refuses {
				t.Errorf("%s, %s: accepted, %q, %+v", c.class, name, p.Unfilled, p.Readers[0])
			}
		}
		if p, err := New(t.Context(), src, Options{}); err == nil && len(p.Unfilled) > 0 {
			t.Errorf("%s: a dict of our own has %q", c.class, p.Unfilled)
		}
	}
}

// TestNestedRenames checks that names of a part are stored where the class has them, if both the class
// and the part rename them, and that the names of the class itself stay.
func TestNestedRenames(t *testing.T) {
	config := map[string]any{"architectures": []string{"GlmAsrForConditionalGeneration"}, "model_type": "glmasr",
		"text_config": map[string]any{"num_hidden_layers": 3}}
	for _, names := range [][2]string{
		{"language_model.model.", "language_model.lm_head"}, // as published
		{"model.language_model.", "lm_head"},
	} {
		m := newModel()
		m.weight(names[1])
		m.weight(names[0] + "embed_tokens")
		for i := range 3 {
			for _, a := range []string{"self_attn.q_proj", "mlp.up_proj"} {
				m.weight(fmt.Sprintf("%slayers.%d.%s", names[0], i, a))
			}
		}
		p := mustPlan(t, source([]WeightFile{m.file("model.safetensors")}, config), Options{})
		var units []string
		for _, u := range p.Units {
			units = append(units, u.Path)
		}
		slices.Sort(units)
		want := "lm_head model.language_model.embed_tokens model.language_model.layers.0 " +
			"model.language_model.layers.1 model.language_model.layers.2"
		if got := strings.Join(units, " "); got != want {
			t.Errorf("%s: units %s, want %s", names[0], got, want)
		}
	}
}

// TestFinished checks whose names and ties apply to the dict of a finished model: those of the entry
// that its manifest names, if that fits the source, or else those of the entry that fits best.
func TestFinished(t *testing.T) {
	src := llama(true, false)
	ids, err := Fitting(t.Context(), src, Options{})
	if err != nil || len(ids) < 2 {
		t.Fatalf("%q fit: %v", ids, err)
	}
	dict := mustPlan(t, src, Options{}).PatternDict
	for stated, want := range map[string]string{ids[0]: ids[0], ids[1]: ids[1], "": ids[0], "none/nothing": ids[0], "exaone": ids[0]} {
		p := mustPlan(t, src, Options{PatternDict: dict, Like: stated, Finished: true})
		if p.Entry != want || p.Provenance != "given" || !p.PatternDict.Equal(dict) {
			t.Errorf("stated %q: entry %q, want %q; %s", stated, p.Entry, want, p.Provenance)
		}
	}
}
