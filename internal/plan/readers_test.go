package plan

import (
	"fmt"
	"strings"
	"testing"
)

// TestForeignNames: names that are not those of the class that the source states can be planned, but no reader that
// builds this class is said to load them. Code of the model's own may define the class anew.
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
		for _, dict := range []PatternDict{nil, {{`(double_blocks|decoder\.h)\.\d+`, []string{strings.SplitN(c.file.Header.Tensors[0].Name, ".0.", 2)[1]}}}} {
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

// TestCaveats: every reader that is said to load a model with a dict that is not the catalog's says what nobody checked.
func TestCaveats(t *testing.T) {
	tr := newTrial()
	for _, dict := range []PatternDict{nil, tinyDict()} {
		tr.opt.PatternDict = dict
		p := tr.mustPlan(t)
		n := 0
		for _, r := range p.Readers {
			if r.Loads == Refuses {
				continue
			}
			if r.Loads != Untested {
				t.Errorf("given %v: %s: %q", dict != nil, r.Name, r.Loads)
			}
			n++
			if !strings.Contains(r.Why, "not checked against the class") {
				t.Errorf("given %v: %s: %s", dict != nil, r.Name, r.Why)
			}
		}
		if n == 0 {
			t.Errorf("given %v: no reader loads it", dict != nil)
		}
	}
}

// TestReaders checks who loads what, by layout.
func TestReaders(t *testing.T) {
	for _, c := range []struct{ id, loads string }{
		{"llama-untied-escaped", "dfloat11"},
		{"qwen3-vl", "dfloat11?"},
		{"flux-kontext-dev-diffusers", "dfloat11"},
		{"flux-comfyui", "ComfyUI-DFloat11-Extended"},
		{"flux2-alt-comfyui", ""},
		{"krea2-comfyui", "ComfyUI-DFloat11-Extended"},
	} {
		p := mustPlan(t, synth(t, findEntry(c.id), false), Options{Like: c.id})
		var loads []string
		for _, r := range p.Readers {
			switch {
			case r.Loads == Loads:
				loads = append(loads, r.Name)
			case r.Loads == Untested:
				loads = append(loads, r.Name+"?")
			case r.Why == "":
				t.Errorf("%s: %s does not load it, and no reason is given", c.id, r.Name)
			}
		}
		if len(p.OtherReaders) > 0 == (p.Layout == ComfyUI) {
			t.Errorf("%s: layout %s, programs that read folders: %v", c.id, p.Layout, p.OtherReaders)
		}
		if got := strings.Join(loads, " "); got != c.loads {
			t.Errorf("%s loads in %q, want %q", c.id, got, c.loads)
		}
	}
}
