package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestUnfilled checks that a dict with modules that no reader fills is refused. Weights of a model
// made with it anyway are equal, and verify says that no reader fills those modules, whatever its
// manifest says.
func TestUnfilled(t *testing.T) {
	g := newForger(t)
	gpt2, flux := world.NewCheckpoint(3), comfyFlux("")
	for i := range 2 {
		gpt2.Block(fmt.Sprintf("transformer.h.%d.", i), "attn.c_attn", "mlp.c_fc")
	}
	t.Chdir(t.TempDir())
	gpt2.Block("transformer.", "wte")
	const swapped = `{"double_blocks\\.\\d+": ["txt_mod.lin", "txt_attn.qkv", "txt_attn.proj", "txt_mlp.0", "txt_mlp.2", ` +
		`"img_mod.lin", "img_attn.qkv", "img_attn.proj", "img_mlp.0", "img_mlp.2"], "single_blocks\\.\\d+": ["linear1", "linear2", "modulation.lin"]}`
	for _, x := range []struct {
		name, dict string
		files      map[string][]byte
		forge      func(f *forged)
		why        string
	}{
		{"org/gptb", `{"transformer\\.h\\.\\d+\\.attn\\.c_attn": [], "transformer\\.h\\.\\d+\\.mlp\\.c_fc": []}`, map[string][]byte{"model.safetensors": gpt2.File(),
			"config.json": []byte(`{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2}`)}, func(*forged) {}, "is of class Conv1D, not Linear"},
		// the auto class builds GPT-2, whatever class the config names
		{"org/gptllama", `{"transformer\\.h\\.\\d+\\.attn\\.c_attn": [], "transformer\\.h\\.\\d+\\.mlp\\.c_fc": []}`, map[string][]byte{"model.safetensors": gpt2.File(),
			"config.json": []byte(`{"model_type": "gpt2", "architectures": ["LlamaForCausalLM"], "n_layer": 2, "num_hidden_layers": 2}`)}, func(*forged) {}, "is of class Conv1D, not Linear"},
		{"org/flux", swapped, map[string][]byte{"flux1-dev.safetensors": flux}, func(*forged) {}, "ComfyUI takes other weights for double_blocks.0, or in another order"},
		{"org/fluxes", swapped, map[string][]byte{"flux1-dev.safetensors": flux}, layout(catalog.DiffusersSingle), "ComfyUI takes other weights for double_blocks.0, or in another order"},
	} {
		dict := filepath.Join(t.TempDir(), "dict.json")
		world.Write(t, dict, x.dict)
		g.AddRepo(x.name, x.files)
		world.WriteAll(t, filepath.Join(g.local, x.name), x.files)
		for _, command := range []string{"plan", "convert"} {
			code, _, diag := program(t, command, x.name, "--pattern-dict", dict)
			if code != exitRefused || !strings.Contains(diag, x.why) || !strings.Contains(diag, "--unfilled") {
				t.Errorf("%s %s: exit %d: %s", command, x.name, code, diag)
			}
		}
		g.models[x.name] = g.convert(x.name, "--pattern-dict", dict, "--unfilled")
		if card := string(g.models[x.name]["README.md"]); !strings.Contains(card, "Does not load in") {
			t.Errorf("%s: the card is %s", x.name, card)
		}
		g.check(g.forge(x.name, true, x.forge), x.name+" unfilled", []string{unfilled + x.why})
	}
}

// TestOriginalIsMain checks that a commit that the model itself names determines only the weights.
// The verdict names all other files that a pull request adds, changes, or removes, in any folder.
func TestOriginalIsMain(t *testing.T) {
	g := newForger(t)
	for _, x := range []struct {
		model string
		files map[string]string // "" takes the file away
		exit  int
	}{
		{llamaModel, map[string]string{"pytorch_model.bin": "evil"}, exitOK},
		{llamaModel, map[string]string{"adapter_config.json": "{}", "adapter_model.bin": "evil"}, exitOK},
		{llamaModel, map[string]string{"x.gguf": "evil", "original/consolidated.00.pth": "evil", "a/b.py": "evil"}, exitOK},
		{llamaModel, map[string]string{"modeling.py": "evil", "tokenizer_config.json": "{}"}, exitOK},
		{llamaModel, map[string]string{"generation_config.json": ""}, exitOK},
		{llamaModel, map[string]string{"config.json": strings.Replace(string(g.models["of "+llamaModel]["config.json"]), "500000.0", "10000.0", 1)}, exitOK},
		{pipeModel, map[string]string{"transformer/diffusion_pytorch_model.fp16.safetensors": "evil"}, exitWrong},
		{pipeModel, map[string]string{"vae/diffusion_pytorch_model.safetensors": string(weightsOf(77))}, exitWrong},
		{pipeModel, map[string]string{"text_encoder/pytorch_model.bin": "evil"}, exitWrong},
		{pipeModel, map[string]string{"vae/config.json": "{}", "scheduler/scheduler_config.json": "{}"}, exitOK},
	} {
		files := map[string][]byte{}
		for name, text := range x.files {
			if files[name] = []byte(text); text == "" {
				files[name] = nil
			}
		}
		commit := g.request(x.model, files)
		f := g.forge(x.model, false, func(f *forged) { f.files = g.convert(x.model + "@" + commit) })
		for name, text := range x.files {
			if text != "" && f.files[name] == nil {
				f.set(name, text) // what a conversion doesn't carry over
			}
		}
		f.relist()
		code, out, diag := program(t, "verify", f.folder())
		for name := range x.files {
			if code == exitOK != (x.exit == exitOK) || !strings.Contains(out, name) || strings.Contains(out, " equals ") {
				t.Errorf("%s %s: exit %d: %s%s", x.model, name, code, out, diag)
			}
		}
	}
}

// TestNothingIsLost checks that the files that sentence-transformers, diffusers, and PEFT open are
// carried over, and that a result without them doesn't equal the original. Otherwise plan, card, and
// verdict name them.
func TestNothingIsLost(t *testing.T) {
	g := newForger(t)
	sentences := maps.Clone(g.models["of "+llamaModel])
	for name, text := range map[string]string{
		"modules.json":              `[{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}, {"path": "3_Dense"}]`,
		"adapter_config.json":       "{}",
		"3_Dense/config.json":       "{}",
		"2_Dense/config.json":       "{}",
		"lora/adapter_config.json":  "{}",
		"aux.py":                    "def f(): pass", // names that Windows can't hold
		"docs/file.":                "x",
		"3_Dense/pytorch_model.bin": "pickled", "adapter_model.safetensors": string(weightsOf(1)), "2_Dense/model.safetensors": string(weightsOf(2)),
		"lora/adapter_model.safetensors": string(weightsOf(3)), "speech/model.safetensors": string(weightsOf(4)), "speech/config.json": "{}",
	} {
		sentences[name] = []byte(text)
	}
	for model, c := range map[string]struct {
		files      map[string][]byte
		lost, kept string // not in the result; in the result
	}{
		"org/sentences": {sentences, "3_Dense/pytorch_model.bin adapter_config.json adapter_model.safetensors speech/model.safetensors aux.py docs/file.", "2_Dense/model.safetensors"},
		"org/pipeline":  {pipelineFiles(), "", "text_encoder/model.safetensors"},
	} {
		g.add(model, c.files)
		result := g.models[model]
		code, plan, diag := program(t, "plan", model)
		if code != exitOK || result[c.kept] == nil {
			t.Errorf("%s: exit %d: %s: %s", model, code, diag, result["README.md"])
		}
		at := filepath.Join(t.TempDir(), "m")
		world.WriteAll(t, at, result)
		_, verdict, _ := program(t, "verify", at)
		for _, name := range strings.Fields(c.lost) {
			if says := func(text string) bool { return strings.Contains(strings.ReplaceAll(text, `\`, ""), name) }; result[name] != nil ||
				!says(plan) || !says(string(result["README.md"])) || !says(verdict) {
				t.Errorf("%s: %s is lost in silence\n%s%s%s", model, name, plan, result["README.md"], verdict)
			}
		}
		if c.lost == "" && !strings.Contains(verdict, " equals ") {
			t.Errorf("%s: %s", model, verdict)
		}
		for name := range c.files {
			if name == "README.md" || result[name] == nil || reader.UseOf(name) == reader.Ignores {
				continue
			}
			world.Must(t, os.Remove(filepath.Join(at, filepath.FromSlash(name))))
			if _, out, _ := program(t, "verify", at); !strings.Contains(out, name) || strings.Contains(out, " equals ") {
				t.Errorf("%s without %s: %s", model, name, out)
			}
			world.Write(t, filepath.Join(at, filepath.FromSlash(name)), result[name])
		}
	}
}
