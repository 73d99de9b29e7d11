package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// These are outcomes of a verification. "no WORDS" means exit 3 and a text with the words. "others
// FILES" means exit 0 and a last line that names exactly these files: first those that programs
// run, then those that they open.
const (
	nothing = "ok" // what this level cannot see, or what harms no one
	wrong   = "no "
	others  = "others "
	// exit 0, and a last line that says why no reader fills a module
	unfilled = "unfilled "
)

// forgeries are models that aren't what they seem. Each has the outcomes at the levels structure,
// proof, and full, with a manifest that was rewritten to fit. The last outcome counts for later
// levels too.
var forgeries = []struct {
	name  string
	model string // "" is llamaModel
	forge func(f *forged)
	said  []string
}{
	// Weights of the model.
	{"a bit of a mantissa", "", flipWeight, []string{nothing, wrong + "differs from"}},
	{"gaps", "", changes("model_layers_1.safetensors", "model.layers.1.gaps", flipBit), []string{wrong}},
	{"an output position", "", changes("model_layers_1.safetensors", "model.layers.1.output_positions", func(x *world.Tensor) { x.Data[len(x.Data)-4]++ }), []string{wrong}},
	{"a bit of a norm", "", changes("model_layers_0.safetensors", "model.layers.0.input_layernorm.weight", flipBit), []string{nothing, wrong + "differs from"}},
	{"the weights of another model", "", func(f *forged) {
		for name := range f.files {
			if strings.HasSuffix(name, ".safetensors") {
				f.take(name, evilModel, name)
			}
		}
	}, []string{nothing, wrong + "differs from"}},
	{"another model, all of it", "", func(f *forged) {
		for name := range f.files {
			if name != names.Manifest {
				f.take(name, evilModel, name)
			}
		}
	}, []string{nothing, wrong + "differs from"}},
	{"two modules exchanged", "", func(f *forged) {
		for i, j := range []int{1, 0} {
			f.take(fmt.Sprintf("model_layers_%d.safetensors", i), llamaModel, fmt.Sprintf("model_layers_%d.safetensors", j))
			f.tensors(fmt.Sprintf("model_layers_%d.safetensors", i), func(list []world.Tensor) []world.Tensor {
				for k := range list {
					list[k].Name = strings.Replace(list[k].Name, fmt.Sprintf("layers.%d.", j), fmt.Sprintf("layers.%d.", i), 1)
				}
				return list
			})
		}
	}, []string{nothing, wrong + "differs from"}},
	{"split positions", "", changes("model_layers_1.safetensors", "model.layers.1.split_positions", func(x *world.Tensor) { x.Data[0]++ }), []string{wrong}},
	{"I32 for I64", "", changes("model_layers_1.safetensors", "model.layers.1.split_positions", func(x *world.Tensor) { x.DType, x.Shape[0] = "I32", 2*x.Shape[0] }), []string{wrong}},
	{"fewer mantissas", "", changes("model_layers_1.safetensors", "model.layers.1.sign_mantissa", func(x *world.Tensor) {
		x.Data, x.Shape = x.Data[1:], []int64{int64(len(x.Data) - 1)}
	}), []string{wrong}},
	{"the type of a norm", "", changes("model_layers_0.safetensors", "model.layers.0.input_layernorm.weight", func(x *world.Tensor) { x.DType = "F16" }), []string{wrong}},
	{"the shape of a norm", "", changes("model_layers_0.safetensors", "model.layers.0.input_layernorm.weight", func(x *world.Tensor) { x.Shape = []int64{1, x.Shape[0]} }), []string{wrong}},
	{"a tensor less", "", without("model_layers_0.safetensors", "input_layernorm.weight"), []string{wrong}},
	{"a plain weight next to its module", "", with("model_layers_0.safetensors",
		world.Tensor{Name: "model.layers.0.mlp.up_proj.weight", DType: "BF16", Shape: []int64{96, 32}, Data: make([]byte, 2*96*32)}), []string{wrong}},
	{"an empty tensor more", "", with("remainder.safetensors", world.Tensor{Name: "model.extra.weight", DType: "BF16", Shape: []int64{0}}), []string{wrong}},
	{"a tensor twice in a header", "", func(f *forged) {
		f.tensors("remainder.safetensors", func(list []world.Tensor) []world.Tensor { return append(list, list[0]) })
	}, []string{wrong}},
	{"bytes behind the last tensor", "", func(f *forged) {
		f.files["remainder.safetensors"] = append(bytes.Clone(f.files["remainder.safetensors"]), 0)
	}, []string{wrong}},

	{"a module stored in BF16 instead", "", func(f *forged) {
		f.tensors("lm_head.safetensors", func([]world.Tensor) []world.Tensor {
			of := f.models["of "+llamaModel]["model.safetensors"]
			h, err := safetensors.ReadHeader(bytes.NewReader(of), int64(len(of)))
			x, ok := h.Lookup("lm_head.weight")
			if err != nil || !ok {
				f.Fatal(err)
			}
			return []world.Tensor{{Name: x.Name, DType: "BF16", Shape: x.Shape, Data: of[h.DataStart()+x.Begin : h.DataStart()+x.End]}}
		})
	}, []string{nothing}},
	{"the metadata of another framework", "", edits("remainder.safetensors", `"format":"pt"`, `"format":"tf"`), []string{nothing}},
	{"modules in another order in the manifest", "", says(func(m *metadata.Manifest) { slices.Reverse(m.Units) }), []string{nothing}},
	{"another layout in the manifest", "", layout(catalog.TransformersSingle), []string{nothing}},
	{"the layout of ComfyUI in the manifest", "", layout(catalog.ComfyUI), []string{wrong + "one .safetensors file"}},
	{"a pattern that matches nothing in Python", "", edits("config.json", `"model\\.layers`, `"MODEL\\.layers`), []string{wrong + "matches no module"}},

	// Weight files that a loader finds next to those of the model.
	{"another weight file", "", func(f *forged) { f.take("else.safetensors", evilModel, "model_layers_0.safetensors") }, []string{wrong}},
	{"the original's weights too", "", func(f *forged) { f.take("pytorch.safetensors", "of "+evilModel, "model.safetensors") }, []string{wrong}},
	{"a weight file without a tensor", "", func(f *forged) { f.files["else.safetensors"] = world.Safetensors(nil) }, []string{wrong + "else.safetensors"}},
	{"an adapter as safetensors", "", func(f *forged) {
		f.files["adapter_model.safetensors"] = weightsOf(1)
		f.set("adapter_config.json", "{}")
	}, []string{wrong + "w.weight"}},
	{"a variant", "", adds("model.fp16.safetensors"), []string{wrong + "w.weight"}},
	{"a name in capitals", "", adds("ZZ.SAFETENSORS"), []string{others + "ZZ.SAFETENSORS (added)"}},
	{"two names where case counts", "", func(f *forged) { f.take("REMAINDER.safetensors", llamaModel, "remainder.safetensors") }, []string{wrong}},
	{"two configs where case counts", "", func(f *forged) { f.set("Config.json", "{}") }, []string{wrong + "on a case-insensitive file system"}},
	{"an index, and weights in a folder", "", func(f *forged) {
		f.set("model.safetensors.index.json", `{"weight_map": {"w.weight": "sub/evil.safetensors"}}`)
		f.files["sub/evil.safetensors"] = weightsOf(1)
	}, []string{others + "model.safetensors.index.json (added), sub/evil.safetensors (added)"}},
	{"weights in a hidden folder", "", adds(".hid/x.safetensors"), []string{others + ".hid/x.safetensors (added)"}},
	{"a pickle, an adapter, code", "", func(f *forged) {
		for _, name := range []string{"pytorch_model.bin", "adapter_model.bin", "adapter_config.json", "handler.py", "chat_template.jinja", "added_tokens.json", ".env"} {
			f.set(name, "{}")
		}
	}, []string{others + "adapter_model.bin (added), handler.py (added), pytorch_model.bin (added), .env (added), adapter_config.json (added), " +
		"added_tokens.json (added), chat_template.jinja (added)"}},
	{"DF11 in a folder, another model at the root", "", func(f *forged) {
		delete(f.files, names.Manifest)
		f.move("sub/")
		for _, name := range []string{"model.safetensors", "config.json", "tokenizer.json"} {
			f.take(name, "of "+evilModel, name)
		}
		f.set("README.md", "---\nbase_model: "+llamaModel+"\n---\n")
	}, []string{wrong + "model.safetensors: another model next to the DF11 model, which is in sub"}},
	{"DF11 in a folder, an index at the root", "", func(f *forged) {
		f.move("sub/")
		f.take("config.json", "of "+evilModel, "config.json")
		f.set("model.safetensors.index.json", `{"weight_map": {"a": "x/y.safetensors"}}`)
		f.set("README.md", "---\nbase_model: "+llamaModel+"\n---\n")
	}, []string{wrong + "model.safetensors.index.json: another model"}},

	// config.json, and other files that a loader reads.
	{"attributes exchanged in the dict", "", exchanged, []string{nothing, wrong + "differs from"}},
	{"the same behind DFloat11_Config", "", edits("config.json", `"dfloat11_config": {`, `"DFloat11_Config": {"threads_per_block": [512]}, "dfloat11_config": {`), []string{wrong + "config.json"}},
	{"the same behind Pattern_Dict", "", edits("config.json", `"pattern_dict": {`, `"Pattern_Dict": {}, "pattern_dict": {`), []string{wrong + "config.json"}},
	{"Threads_per_block", "", edits("config.json", `"threads_per_block": [`, `"Threads_per_block": [256], "threads_per_block": [`), []string{wrong + "config.json"}},
	{"a second dfloat11_config", "", edits("config.json", `"dfloat11_config": {`, `"dfloat11_config": {"threads_per_block": [512], "bytes_per_thread": 8, "pattern_dict": {}}, "dfloat11_config": {`), []string{wrong + "dfloat11_config appears twice"}},
	{"a second dfloat11_config without a dict", "", edits("config.json", `"vocab_size"`, `"dfloat11_config": {"threads_per_block": [512], "bytes_per_thread": 8}, "vocab_size"`), []string{wrong + "dfloat11_config appears twice"}},
	{"a member of config.json", "", edits("config.json", `"rope_theta": 500000.0`, `"rope_theta": 10000.0`), []string{others + "config.json"}},
	{"fewer layers", "", edits("config.json", `"num_hidden_layers": 2`, `"num_hidden_layers": 1`), []string{others + "config.json"}},
	{"a member twice in config.json", "", edits("config.json", `"rope_theta"`, `"rope_theta": 1.0, "rope_theta"`), []string{others + "config.json"}},
	{"code in config.json", "", edits("config.json", `"vocab_size"`, `"auto_map": {"AutoModel": "evil/repo--m.C"}, "vocab_size"`), []string{others + "config.json"}},
	{"nothing but a dict in config.json", "", func(f *forged) {
		config := f.files["config.json"]
		f.set("config.json", "{\n"+string(config[bytes.Index(config, []byte(`  "dfloat11_config"`)):]))
	}, []string{others + "config.json"}},
	{"tokenizer, generation config and code changed", "", func(f *forged) {
		for _, name := range []string{"tokenizer.json", "generation_config.json", "modeling.py"} {
			b := bytes.Clone(f.files[name])
			b[len(b)-2] = '#' // of the same size
			f.files[name] = b
		}
	}, []string{others + "modeling.py, generation_config.json, tokenizer.json"}},
	{"a generation config less", "", func(f *forged) { delete(f.files, "generation_config.json") }, []string{others + "generation_config.json (missing)"}},
	{"a card of one's own", "", func(f *forged) { f.set("README.md", "mine") }, []string{nothing}},
	{"another picture", "", func(f *forged) { f.set("df11.png", "mine") }, []string{nothing}},
	{"no manifest, an honest model", "", func(f *forged) { delete(f.files, names.Manifest) }, []string{nothing}},
	{"lines that a Hub adds for Git", "", func(f *forged) {
		f.set(".gitattributes", "*.safetensors filter=lfs diff=lfs merge=lfs -text\n*.png filter=lfs diff=lfs merge=lfs -text\n")
	}, []string{nothing}},
	{"other lines for Git", "", func(f *forged) { f.set(".gitattributes", "vocab.txt text eol=crlf\n") }, []string{nothing}},

	// Pipelines: files that load as other components.
	{"weights of another component", pipeModel, adds("vae/diffusion_pytorch_model.safetensors"), []string{nothing, wrong + "differs from org/pipe (transformer): vae/"}},
	{"weights of another component, of another size", pipeModel, func(f *forged) {
		f.files["text_encoder/model.safetensors"] = world.Safetensors(nil)
	}, []string{wrong + "text_encoder/model.safetensors: these weights of another component are changed"}},
	{"weights of the other transformer", pipeModel, func(f *forged) {
		f.take("transformer_2/diffusion_pytorch_model.safetensors", "of "+pipeModel, "transformer/diffusion_pytorch_model.safetensors")
	}, []string{nothing, wrong + "transformer_2/"}},
	{"weights of another component missing", pipeModel, func(f *forged) { delete(f.files, "vae/diffusion_pytorch_model.safetensors") }, []string{wrong + "vae/diffusion_pytorch_model.safetensors"}},
	{"weights where the modules are loaded instead", pipeModel, adds("transformer/diffusion_pytorch_model.safetensors"), []string{wrong + "transformer/diffusion_pytorch_model.safetensors"}},
	{"a variant of another component", pipeModel, adds("vae/diffusion_pytorch_model.fp16.safetensors"), []string{wrong + "vae/diffusion_pytorch_model.fp16.safetensors"}},
	{"an index of another component", pipeModel, func(f *forged) {
		f.set("vae/diffusion_pytorch_model.safetensors.index.json", `{"weight_map": {"w.weight": "x.safetensors"}}`)
		f.files["vae/x.safetensors"] = weightsOf(7)
	}, []string{wrong + "vae/diffusion_pytorch_model.safetensors.index.json"}},
	{"a pickle of another component", pipeModel, func(f *forged) { f.set("text_encoder/pytorch_model.bin", "evil") }, []string{wrong + "text_encoder/pytorch_model.bin"}},
	{"a component more", pipeModel, func(f *forged) {
		f.edit("model_index.json", `"vae"`, `"transformer_3": ["diffusers", "WanTransformer3DModel"], "vae"`)
		f.take("transformer_3/diffusion_pytorch_model.safetensors", "of "+pipeModel, "transformer/diffusion_pytorch_model.safetensors")
	}, []string{wrong + "transformer_3/"}},
	{"another list of components", pipeModel, edits("model_index.json", "AutoencoderKLWan", "AutoencoderTiny"), []string{others + "model_index.json"}},
	{"the config of a component", pipeModel, edits("transformer/config.json", `"num_layers": 2`, `"num_layers": 1`), []string{others + "transformer/config.json"}},
	{"an adapter in a folder", pipeModel, adds("lora/adapter.safetensors"), []string{others + "lora/adapter.safetensors (added)"}},
	{"a config of the modules with more", pipeModel, edits("config.json", `"model_type"`, `"num_layers": 1, "model_type"`), []string{others + "config.json"}},
	{"modules of the other transformer", pipeModel, otherTransformer, []string{nothing, wrong + "differs from org/pipe (transformer)"}},
	{"modules of the other transformer, by the manifest", pipeModel, func(f *forged) {
		otherTransformer(f)
		f.set("README.md", "---\nbase_model: "+pipeModel+"\n---\n")
		f.manifest(func(m *metadata.Manifest) {
			m.Source.Files[0].Path = "transformer_2/diffusion_pytorch_model.safetensors"
		})
	}, []string{wrong + "transformer/diffusion_pytorch_model.safetensors"}},
	{"modules of the other transformer, with all weights next to them", pipeModel, func(f *forged) {
		card := f.files["README.md"]
		f.files = maps.Clone(f.models[pipe2Model])
		f.files["README.md"] = card
		f.take("transformer_2/diffusion_pytorch_model.safetensors", "of "+pipeModel, "transformer_2/diffusion_pytorch_model.safetensors")
	}, []string{nothing}},
	{"modules in the folder of the other transformer", pipeModel, func(f *forged) {
		delete(f.files, names.Manifest)
		f.move("transformer_2/", "model_index.json", "README.md")
	}, []string{wrong}},
}

// otherTransformer copies the modules of the pipeline's other transformer.
func otherTransformer(f *forged) {
	for name := range f.files {
		if strings.HasPrefix(name, "blocks_") || name == "remainder.safetensors" {
			f.take(name, pipe2Model, name)
		}
	}
}

// layout changes the layout in the manifest.
func layout(l catalog.Layout) func(f *forged) {
	return says(func(m *metadata.Manifest) { m.Plan.Layout = string(l) })
}

// exchanged swaps two attributes of one shape in the dict, whose order is that of the weights.
func exchanged(f *forged) {
	f.edit("config.json", `"self_attn.q_proj"`, `"self_attn.X"`)
	f.edit("config.json", `"self_attn.o_proj"`, `"self_attn.q_proj"`)
	f.edit("config.json", `"self_attn.X"`, `"self_attn.o_proj"`)
}

// TestForgeries checks that no level says that a forgery equals the original without naming what
// differs. If the manifest wasn't rewritten, changed weights are a fault at every level that knows
// their hash.
func TestForgeries(t *testing.T) {
	g := newForger(t)
	g.models[llamaModel+"2 single"] = g.convert(llamaModel, "--layout", "transformers-single")
	g.models[pipeModel+"2 single"] = g.convert(pipeModel, "--layout", "diffusers-single")
	for _, model := range []string{llamaModel, pipeModel, pipe2Model, llamaModel + "2 single", pipeModel + "2 single"} {
		g.check(g.forge(model, false, func(*forged) {}), "honest "+model, []string{nothing})
	}
	for _, x := range forgeries {
		if x.model == "" {
			x.model = llamaModel
		}
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			g := &forger{T: t, Server: g.Server, models: g.models, local: g.local}
			g.check(g.forge(x.model, true, x.forge), x.name, x.said)
			stale := g.forge(x.model, false, x.forge)
			if stale.isStale() {
				x.said = []string{wrong}
			}
			g.check(stale, x.name+", the manifest untouched", x.said)
		})
	}
}

// isStale reports whether the manifest's hashes of weights don't fit the files.
func (f *forged) isStale() bool {
	m, err := metadata.ParseManifest(f.files[names.Manifest], 0)
	return err == nil && slices.ContainsFunc(m.Outputs, func(o metadata.OutputFile) bool {
		b, ok := f.files[o.Path]
		return strings.HasSuffix(o.Path, ".safetensors") && (!ok || world.Sum(b) != o.SHA256)
	})
}

// check verifies a forgery at all levels: in a folder if its manifest fits, and otherwise in a
// repo, which publishes hashes.
func (g *forger) check(f *forged, name string, said []string) {
	at := f.place(name)
	local := filepath.Join(g.local, f.original())
	for i, level := range []string{"structure", "proof", "full"} {
		want := said[min(i, len(said)-1)]
		if !f.fit && want == nothing && len(said) > i+1 && strings.HasPrefix(name, "weights of") {
			want = said[i+1] // the repo publishes the hashes of these weights
		}
		for _, original := range originals(f, level, local) {
			args := []string{"verify", at, "--level", level}
			if original != "" {
				args = append(args, "--against", original)
			}
			want := want
			if original == local {
				want = strings.Replace(want, f.original(), filepath.Base(local), 1)
			}
			code, out, diag := program(g.T, args...)
			if !matches(want, code, out, diag) {
				g.Errorf("%s: %v: exit %d, want %q\n%s%s", name, args[2:], code, want, out, diag)
			}
		}
	}
	if want := said[len(said)-1]; strings.HasPrefix(want, others) {
		g.checkBeside(name, at, strings.TrimPrefix(want, others))
	}
}

// originals returns what to verify a forgery against at a level: the repo, the repo that the model
// itself names (""), and at level full a local folder. Without DF11_DEEP, a level takes one of
// them, and a model with its old manifest is tried at one level.
func originals(f *forged, level, local string) []string {
	switch deep := world.Deep(); {
	case deep && level == "full":
		return []string{f.original(), "", local}
	case deep:
		return []string{f.original(), ""}
	case f.fit:
		return []string{map[string]string{"structure": "", "proof": f.original(), "full": local}[level]}
	case level == "proof":
		return []string{""}
	}
	return nil
}

// matches reports whether a verification ended as want says.
func matches(want string, code int, out, diag string) bool {
	last := lastLine(out)
	_, beside, named := strings.Cut(last, " from the original: ")
	words, isWrong := strings.CutPrefix(want, wrong)
	why, isUnfilled := strings.CutPrefix(want, unfilled)
	switch {
	case isUnfilled:
		return code == exitOK && strings.Contains(last, "no known reader gives every module its weights: ") && strings.Contains(last, why) && !strings.Contains(last, " equals ")
	case isWrong:
		return code == exitWrong && strings.Contains(out+diag, words) && !strings.Contains(last, "equal")
	case want == nothing:
		return code == exitOK && !named && (strings.Contains(last, "equals") || strings.Contains(last, "shows no fault"))
	}
	return code == exitOK && beside == strings.TrimPrefix(want, others) && !strings.Contains(last, " equals ")
}

func lastLine(out string) string {
	out = strings.TrimSpace(out)
	return out[strings.LastIndex(out, "\n")+1:]
}

// checkBeside checks that the document names the same files, and that --strict-files makes them an
// error.
func (g *forger) checkBeside(name, at, files string) {
	var doc struct {
		Beside []string
		Equal  bool
	}
	code, out, _ := program(g.T, "verify", at, "--json", "--strict-files")
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitFiles || !doc.Equal {
		g.Errorf("%s, --strict-files: exit %d: %v: %s", name, code, err, out)
	}
	var want []string
	for file := range strings.SplitSeq(files, ", ") {
		path, _, _ := strings.Cut(file, " (")
		want = append(want, path)
	}
	if !slices.Equal(doc.Beside, want) {
		g.Errorf("%s: other files: %q, want %q", name, doc.Beside, want)
	}
}

// TestForgedOrigins checks models that choose their original by a repo and a commit: verify reports
// the choice if main has other files.
func TestForgedOrigins(t *testing.T) {
	g := newForger(t)
	evil := maps.Clone(g.models["of "+evilModel])
	delete(evil, "README.md")
	pull := g.request(llamaModel, evil)
	tokenizer := g.request(llamaModel, map[string][]byte{"tokenizer.json": []byte("{}")})
	convert := func(commit string) func(f *forged) {
		files := g.convert(llamaModel + "@" + commit)
		return func(f *forged) { f.files = files }
	}
	t.Chdir(t.TempDir()) // with a folder of the original's name
	world.WriteAll(t, filepath.FromSlash(llamaModel), evil)
	world.WriteAll(t, "evil", evil)
	const odd = "an older or unmerged commit"
	for _, x := range []struct {
		name   string
		forge  func(f *forged)
		onMain any // in the document; nil if it does not say
		said   string
		exit   int
	}{
		{"honest", func(*forged) {}, true, ", the same weights as main", exitOK},
		{"other weights by a pull request", convert(pull), false, odd, exitOK},
		{"another tokenizer by a pull request", convert(tokenizer), true, "1 other file differs from the original: tokenizer.json", exitOK},
		{"a branch", named(func(s *metadata.Source) { s.Commit = "refs/pr/1" }), nil, `commit "refs/pr/1" isn't a commit id`, exitWrong},
		{"a short commit", named(func(s *metadata.Source) { s.Commit = s.Commit[:39] }), nil, "isn't a commit id", exitWrong},
		{"a folder", named(func(s *metadata.Source) { s.Repo = "/tmp/evil" }), nil, "isn't a Hub id", exitWrong},
		{"a folder above", named(func(s *metadata.Source) { s.Repo = "../evil" }), nil, "isn't a Hub id", exitWrong},
		{"a folder here", named(func(s *metadata.Source) { s.Repo, s.Commit = "evil", "" }), nil, "isn't a Hub id", exitWrong},
		{"a folder as a base model", func(f *forged) {
			delete(f.files, names.Manifest)
			f.set("README.md", "---\nbase_model: ./evil\n---\n")
		}, nil, "name the original with --against", exitError},
		{"the name of a folder", func(f *forged) {
			f.files = maps.Clone(f.models[evilModel])
			named(func(s *metadata.Source) { *s = metadata.Source{Repo: llamaModel, Files: s.Files} })(f)
		}, true, "differs from org/llama", exitWrong},
		{"card and manifest disagree", func(f *forged) { f.edit("README.md", "base_model: "+llamaModel, "base_model: org/other") },
			true, "the manifest says that the original is org/llama, the card says org/other", exitOK},
		{"a card alone", func(f *forged) { delete(f.files, names.Manifest) }, true, "the same weights as main", exitOK},
	} {
		f := g.forge(llamaModel, false, x.forge)
		world.WriteAll(t, "m", f.files)
		g.AddRepo("anybody/m", f.files)
		for _, at := range []string{"m", "anybody/m"} {
			code, out, diag := program(t, "verify", at)
			if code != x.exit || !strings.Contains(out+diag, x.said) {
				t.Errorf("%s: exit %d, want %d and %q: %s%s", x.name, code, x.exit, x.said, out, diag)
			}
			if last := lastLine(out); x.onMain == false && !strings.Contains(last, odd) {
				t.Errorf("%s: the verdict is %s", x.name, last)
			}
			_, out, _ = program(t, "verify", at, "--json")
			var doc map[string]any
			if err := json.Unmarshal([]byte(out), &doc); err != nil || doc["against_on_main"] != x.onMain || x.onMain != nil && len(fmt.Sprint(doc["against_commit"])) != 40 {
				t.Errorf("%s: %v: %s", x.name, err, out)
			}
		}
		if code, out, _ := program(t, "verify", "m", "--against", g.URL+"/"+llamaModel); x.onMain == false && x.said == odd && code != exitWrong {
			t.Errorf("%s: against main: %s", x.name, out)
		}
		world.Must(t, os.RemoveAll("m"))
	}
}

// named forges the manifest's data about the original.
func named(edit func(s *metadata.Source)) func(f *forged) {
	return says(func(m *metadata.Manifest) { edit(&m.Source) })
}

// TestEveryFileCounts checks that a model with any changed, missing, or added file, in any folder,
// doesn't simply equal its original, even if the manifest fits.
func TestEveryFileCounts(t *testing.T) {
	g, deep := newForger(t), world.Deep()
	try := func(model, what, name string, edit func(f *forged)) {
		if slices.Contains([]string{"README.md", "df11.png", names.Manifest}, name) {
			return // for people
		}
		code, out, diag := program(t, "verify", g.forge(model, true, edit).place(""))
		_, beside, _ := strings.Cut(out, " from the original: ")
		if code != exitWrong && !(code == exitOK && strings.Contains(beside, name) && !strings.Contains(out, " equals ")) {
			t.Errorf("%s of %s %s: exit %d: %s%s", name, model, what, code, out, diag)
		}
	}
	for _, model := range []string{llamaModel, pipeModel} {
		for name, b := range g.models[model] {
			try(model, "changed", name, func(f *forged) { f.files[name] = spoiled(name, b) })
			try(model, "missing", name, func(f *forged) { delete(f.files, name) })
		}
		for i, dir := range []string{"", ".hid/", "vae/", "transformer/", "a/b/", "__pycache__/"} {
			for j, name := range []string{"x.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "Config.JSON", "README.md", "df11.png", ".x", "x.py"} {
				// every folder and every name, but each name in two folders only unless DF11_DEEP is set
				if taken := deep || (i+j)%3 == 0; taken && g.models[model][dir+name] == nil {
					try(model, "added", dir+name, func(f *forged) { f.files[dir+name] = weightsOf(1) })
				}
			}
		}
	}
}
