package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// cardCommand matches the command of a model card that repeats the proof.
var cardCommand = regexp.MustCompile(`(?m)^(?:uvx )?df11-convert (verify .*)$`)

// provesItself converts a source and runs the card's command, with the model and its source filled
// in, at every level that reads weights.
func provesItself(t *testing.T, source string, args ...string) {
	t.Helper()
	out := t.TempDir()
	must(t, append([]string{source, "-o", out, "-q"}, args...)...)
	m := cardCommand.FindStringSubmatch(string(world.Read(t, filepath.Join(out, "README.md"))))
	if m == nil {
		t.Fatal("the card has no command")
	}
	command := strings.Fields(m[1])
	command[1] = out
	if i := slices.Index(command, "SOURCE"); i >= 0 {
		command[i] = source
	}
	for _, level := range []string{"full", "proof"} {
		ends(t, exitOK, "", append(slices.Clone(command), "--level", level, "-q")...)
	}
}

// TestCardCommand checks that the command on the model card verifies a conversion: for classes
// whose names change on the way, or whose tensors stand for others, and for one class of each
// layout.
func TestCardCommand(t *testing.T) {
	t.Parallel()
	layouts := map[catalog.Layout]bool{}
	for _, e := range catalog.All() {
		if e.Refuse != nil || e.LikeOnly {
			continue
		}
		if len(e.Renames()) == 0 && (e.Tied == nil || e.Tied.Always == nil) && layouts[e.Layout] {
			continue
		}
		layouts[e.Layout] = true
		t.Run(e.ID, func(t *testing.T) {
			t.Parallel()
			provesItself(t, classSource(t, e))
		})
	}
}

// TestCardCommandOptions checks the same for sources that convert only with an option, which the
// card repeats.
func TestCardCommandOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	tied := world.NewCheckpoint(5)
	tied.Block("model.layers.0.", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
	tied.Add("lm_head.weight", "BF16", 0, 64, 32)
	world.Write(t, at("tied/model.safetensors"), tied.File())
	world.Write(t, at("tied/config.json"), `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 1, "tie_word_embeddings": true}`)
	llama(t, at("f32"), "F32", 0, "")
	world.Write(t, at("two/a.safetensors"), comfyFlux(""))
	world.Write(t, at("two/b.safetensors"), comfyFlux("model.diffusion_model."))
	world.Write(t, at("dict.json"), `{"language_model\\.model\\.layers\\.\\d+": ["self_attn.q_proj", "self_attn.k_proj"]}`)
	for name, args := range map[string][]string{
		"a tied model that stores only its head":  {at("tied")},
		"exact F32":                               {at("f32"), "--exact-f32"},
		"one file of several":                     {at("two"), "--file", "b.safetensors"},
		"an entry that is never chosen by itself": {classSource(t, catalog.Find("gemma3-vlm")), "--like", "gemma3-vlm"},
		"an entry of another class":               {otherClass(t, catalog.Find("gemma3-vlm-4.52")), "--like", "gemma3-vlm-4.52"},
		"the source's own names, by a given dict": {classSource(t, catalog.Find("gemma3-vlm-4.52")), "--pattern-dict", at("dict.json")},
	} {
		t.Run(name, func(t *testing.T) { provesItself(t, args[0], args[1:]...) })
	}
}

// otherClass writes a tiny model with the names of an entry, whose config names another class.
func otherClass(t *testing.T, e *catalog.Entry) string {
	t.Helper()
	source := classSource(t, e)
	config := strings.ReplaceAll(string(world.Read(t, filepath.Join(source, "config.json"))), e.Match.ModelType[0], "of_mine")
	config = strings.Replace(config, e.Match.Architectures[0], "MyForConditionalGeneration", 1)
	world.Write(t, filepath.Join(source, "config.json"), config)
	return source
}

// TestNamesAreEvidence checks that verify doesn't believe a manifest about names that the
// original's class doesn't have, and needs no manifest for names that it has. A loader finds
// tensors by their names.
func TestNamesAreEvidence(t *testing.T) {
	t.Parallel()
	e := catalog.Find("gemma3-vlm-4.52")
	mine, out := otherClass(t, e), t.TempDir()
	must(t, mine, "--like", e.ID, "-o", out, "-q")
	ends(t, exitWrong, "matches no module", "verify", out, "--against", mine)
	known, out2 := classSource(t, e), t.TempDir()
	must(t, known, "-o", out2, "-q")
	world.Must(t, os.Remove(filepath.Join(out2, "df11-manifest.json")))
	must(t, "verify", out2, "--against", known, "-q")
}

// classSource writes a tiny model of a class, with the names of the Hub.
func classSource(t *testing.T, e *catalog.Entry) string {
	t.Helper()
	x := world.NewCheckpoint(6)
	seen := map[string]bool{}
	add := func(name string, shape ...int64) {
		if name = hubtest.CheckpointName(e.Renames(), name); !seen[name] {
			seen[name] = true
			x.Add(name, "BF16", 0, shape...)
		}
	}
	if e.Tied != nil {
		for _, pair := range e.Tied.Always {
			add(pair[1], 64, 16)
			seen[pair[0]] = true
			x.Again(pair[0])
		}
	}
	for _, m := range e.Match.Markers {
		add(m, 16, 16)
	}
	for _, p := range e.PatternDict {
		for _, module := range hubtest.Expand(p.Regex, "0", "1") {
			if len(p.Attrs) == 0 {
				add(module+".weight", 64, 16)
			}
			for i, a := range p.Attrs {
				add(module+"."+strings.ReplaceAll(a, "{e}", "0")+".weight", int64(8+2*(i%5)), 16)
			}
			if len(p.Attrs) > 0 {
				add(module+".norm.weight", 16)
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "model")
	world.Write(t, filepath.Join(dir, "df11.png"), "a picture")
	config := map[string]any{"num_hidden_layers": 2, "tie_word_embeddings": false}
	first := func(key string, list []string) {
		if len(list) > 0 {
			config[key] = list[0]
		}
	}
	first("model_type", e.Match.ModelType)
	first("_class_name", e.Match.ClassName)
	if len(e.Match.Architectures) > 0 {
		config["architectures"] = e.Match.Architectures[:1]
	}
	b, err := json.Marshal(config)
	world.Must(t, err)
	switch e.Layout {
	case catalog.ComfyUI:
		world.Write(t, filepath.Join(dir, "some.safetensors"), x.File())
	case catalog.Diffusers, catalog.DiffusersSingle:
		world.Write(t, filepath.Join(dir, "transformer", "diffusion_pytorch_model.safetensors"), x.File())
		world.Write(t, filepath.Join(dir, "transformer", "config.json"), b)
		world.Write(t, filepath.Join(dir, "model_index.json"), `{"_class_name": "P", "transformer": ["diffusers", "X"]}`)
	default:
		world.Write(t, filepath.Join(dir, "model.safetensors"), x.File())
		world.Write(t, filepath.Join(dir, "config.json"), b)
	}
	return dir
}
