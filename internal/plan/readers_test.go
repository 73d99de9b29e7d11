package plan

import (
	"fmt"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"slices"
	"strings"
	"testing"
)

// TestForeignNames: names that are not those of the class that the source states can be planned,
// but no reader that builds this class is said to load them. Code of the model's own may define the
// class anew.
func TestForeignNames(t *testing.T) {
	comfy := newModel()
	language := newModel()
	for i := range 2 {
		comfy.weight(fmt.Sprintf("double_blocks.%d.img_attn.qkv", i))
		language.weight(fmt.Sprintf("decoder.h.%d.attn.q_proj", i))
	}
	for _, c := range []struct {
		name   string
		file   WeightFile
		config map[string]any
		class  string // named in the reason; "" if the official loader may load it
	}{
		{"diffusers class", comfy.file("diffusion_pytorch_model.safetensors"), map[string]any{"_class_name": "FluxTransformer2DModel"}, "FluxTransformer2DModel"},
		{"unknown diffusers class", comfy.file("diffusion_pytorch_model.safetensors"), map[string]any{"_class_name": "NewTransformer2DModel"}, ""},
		{"transformers class", language.file("model.safetensors"), map[string]any{"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}}, "LlamaForCausalLM"},
		{"bare class", language.file("model.safetensors"), map[string]any{"model_type": "modernbert", "architectures": []string{"ModernBertModel"}}, ""},
		{"class of the model's own", language.file("model.safetensors"), map[string]any{"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "auto_map": map[string]any{}}, ""},
	} {
		for _, dict := range []catalog.PatternDict{nil, {{Regex: `(double_blocks|decoder\.h)\.\d+`, Attrs: []string{strings.SplitN(c.file.Header.Tensors[0].Name, ".0.", 2)[1]}}}} {
			if dict != nil {
				dict[0].Attrs[0] = strings.TrimSuffix(dict[0].Attrs[0], ".weight")
			}
			p, err := New(t.Context(), source([]WeightFile{c.file}, c.config), Options{PatternDict: dict})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for _, r := range p.Readers {
				if r.Loads != Refuses && c.class != "" || r.Name == "dfloat11" && !strings.Contains(r.Why, c.class) {
					t.Errorf("%s, dict %v: %s loads it %v: %s", c.name, dict != nil, r.Name, r.Loads, r.Why)
				}
			}
		}
	}
}

// TestCaveats: what is said of a dict that is not the catalog's names what nobody checked.
func TestCaveats(t *testing.T) {
	for _, dict := range []catalog.PatternDict{nil, tinyDict()} {
		tr := newTrial()
		tr.opt.PatternDict = dict
		if r := tr.mustPlan(t).Readers[0]; r.Loads != Untested || !strings.Contains(r.Why, "not checked against the class") {
			t.Errorf("given %v: %+v", dict != nil, r)
		}
	}
}

// TestReaders checks whether the official loader and the ComfyUI node load models of some entries.
func TestReaders(t *testing.T) {
	for id, want := range map[string][2]Verdict{
		"llama-untied-escaped":       {Loads, Refuses},
		"qwen3-vl":                   {Loads, Refuses},
		"mllama":                     {Untested, Refuses},
		"bagel-7b-mot":               {Refuses, Refuses},
		"flux-kontext-dev-diffusers": {Loads, Refuses},
		"flux-comfyui":               {Refuses, Loads},
		"flux2-alt-comfyui":          {Refuses, Refuses},
		"krea2-comfyui":              {Refuses, Loads},
	} {
		p := mustPlan(t, synth(t, catalog.Find(id), false), Options{Like: id})
		for i, r := range p.Readers {
			if r.Loads != want[i] || r.Loads == Refuses && r.Why == "" {
				t.Errorf("%s: %+v, want %s with a reason", id, r, want[i])
			}
		}
		if len(p.OtherReaders) > 0 == (p.Layout == catalog.ComfyUI) {
			t.Errorf("%s: layout %s, programs that read folders: %v", id, p.Layout, p.OtherReaders)
		}
	}
}

// TestYesIsWhatWasTried: of an entry's classes and model types, the official loader is said to load
// those of which a tiny model came out equal, and no others. So each "yes" has its line in
// tried.txt, and each line that is equal is a "yes".
func TestYesIsWhatWasTried(t *testing.T) {
	t.Parallel()
	equal := map[string]bool{} // "class type", of models that transformers 4 has saved, if it can
	for _, c := range catalog.AllTried() {
		for _, r := range c.Results {
			if !slices.Contains([]string{"equal", "tied", "untied", "no", "-"}, r) || r != "no" && r != "-" && len(c.Modules) == 0 {
				t.Errorf("%s %s: result %q with the modules %v", c.Class, c.ModelType, r, c.Modules)
			}
		}
		results := c.Results[:2]
		if results[0] == "-" {
			results = c.Results[2:]
		}
		key := c.Class + " " + c.ModelType
		equal[key] = equal[key] || slices.ContainsFunc(results, func(r string) bool { return r != "no" && r != "-" })
	}
	n := 0
	for _, e := range catalog.All() {
		if e.LikeOnly || e.Derive || e.Refuse != nil || e.Layout.Family() == catalog.ComfyUI {
			continue
		}
		for _, class := range slices.Concat(e.Match.Architectures, e.Match.ClassName) {
			for _, modelType := range append(e.Match.ModelType, "")[:max(1, len(e.Match.ModelType))] {
				one := *e
				one.Match.Architectures, one.Match.ModelType = []string{class}, []string{modelType}
				p := mustPlan(t, synth(t, &one, mustBeTied(e)), Options{})
				switch got := p.Readers[0]; {
				case (got.Loads == Loads) != equal[class+" "+modelType]:
					t.Errorf("%s, %s %s: %s (%s), tried: %v", e.ID, class, modelType, got.Loads, got.Why, equal[class+" "+modelType])
				case got.Loads == Loads:
					n++
				}
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d classes of the catalog were loaded", n)
	}
}

// TestVersions: which transformers loads a model depends on the one that saved it, and on what came
// out of both.
func TestVersions(t *testing.T) {
	for _, c := range []struct{ entry, savedBy, verdict, versions string }{
		{"olmo2", "4.57.1", "yes", ">=4.51"},
		{"olmo2", "5.2.0", "yes", ">=5"},
		{"qwen3-moe", "4.57.1", "yes", ">=4.51,<5"},
		{"qwen3-moe", "5.2.0", "no", ">=5"},
		{"clip-text", "", "yes", "<5"},
		{"clip-text", "5.2.0", "yes", ">=5"},
		{"qwen3_5-text", "4.57.0.dev0", "yes", ">=5"},
		{"internlm2", "4.41.0", "untested", "<5"},
	} {
		e := catalog.Find(c.entry)
		src := synth(t, e, mustBeTied(e))
		src.Config = append(fmt.Appendf(nil, `{"transformers_version": %q, `, c.savedBy), src.Config[1:]...)
		p := mustPlan(t, src, Options{})
		if got := p.Readers[0]; string(got.Loads) != c.verdict || p.Loader.Transformers != c.versions {
			t.Errorf("%s, saved by %q: %s with %q, want %s with %q", c.entry, c.savedBy, got.Loads, p.Loader.Transformers, c.verdict, c.versions)
		}
	}
}

// TestOwnCode: a class that comes with the model is built only by trusting its code, unless the
// library's own was tried.
func TestOwnCode(t *testing.T) {
	for id, want := range map[string]bool{"olmo2": false, "internlm2": true} {
		e := catalog.Find(id)
		src := synth(t, e, false)
		src.Config = append([]byte(`{"auto_map": {"AutoModelForCausalLM": "modeling.X"}, `), src.Config[1:]...)
		if p := mustPlan(t, src, Options{}); p.Loader.RemoteCode != want {
			t.Errorf("%s: %+v", id, p.Loader)
		}
	}
}
