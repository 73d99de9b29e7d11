package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// forger makes forgeries of DF11 models: a small Llama, and a pipeline with two transformers. Their
// originals are on a hub.
type forger struct {
	*testing.T
	*hubtest.Server
	// the files of honest models, and of their originals, by name
	models map[string]map[string][]byte
	local  string // a folder with the originals
}

// The originals: evil has llama's shapes and other weights; pipe2 is the pipeline with its other
// transformer converted.
const llamaModel, evilModel, pipeModel, pipe2Model = "org/llama", "org/evil", "org/pipe", "org/pipe2"

func newForger(t *testing.T) *forger {
	t.Helper()
	g := &forger{T: t, Server: startHub(t, ""), models: map[string]map[string][]byte{}, local: t.TempDir()}
	o := hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 2, Extra: map[string][]byte{"modeling.py": []byte("print()\n")}}
	g.add(llamaModel, hubtest.NewLlama(0, o).Files())
	g.add(evilModel, hubtest.NewLlama(7, o).Files())
	g.add(pipeModel, pipelineFiles())
	g.models[pipe2Model] = g.convert(pipeModel, "--component", "transformer_2")
	return g
}

// add puts an original on the hub, and keeps its honest conversion.
func (g *forger) add(name string, files map[string][]byte) {
	files["README.md"] = []byte("---\nlicense: mit\n---\n# " + name + "\n")
	g.AddRepo(name, files)
	world.WriteAll(g.T, filepath.Join(g.local, name), files)
	g.models["of "+name] = files
	g.models[name] = g.convert(name)
}

// convert returns the files of an honest conversion.
func (g *forger) convert(source string, args ...string) map[string][]byte {
	dir := g.TempDir()
	must(g.T, append([]string{source, "-o", dir, "-q"}, args...)...)
	return world.ReadAll(g.T, dir)
}

// pipelineFiles returns a pipeline with two transformers of the same shapes, and two other
// components.
func pipelineFiles() map[string][]byte {
	files := map[string][]byte{
		"model_index.json": []byte(`{"_class_name": "WanPipeline", "transformer": ["diffusers", "WanTransformer3DModel"], "transformer_2": ["diffusers", "WanTransformer3DModel"], "vae": ["diffusers", "AutoencoderKLWan"], "text_encoder": ["transformers", "UMT5EncoderModel"]}`),
		"vae/config.json":  []byte(`{"_class_name": "AutoencoderKLWan"}`), "text_encoder/config.json": []byte(`{"model_type": "umt5"}`),
	}
	for i, dir := range []string{"transformer", "transformer_2"} {
		c := world.NewCheckpoint(uint64(i))
		c.Block("", "patch_embedding", "proj_out")
		for b := range 2 {
			c.Block(fmt.Sprintf("blocks.%d.", b), "attn1.to_q", "attn1.to_k", "attn1.to_v", "attn1.to_out.0", "attn2.to_q", "attn2.to_k", "attn2.to_v",
				"attn2.to_out.0", "ffn.net.0.proj", "ffn.net.2")
		}
		files[dir+"/diffusion_pytorch_model.safetensors"] = c.File()
		files[dir+"/config.json"] = []byte(`{"_class_name": "WanTransformer3DModel", "num_layers": 2}`)
	}
	files["vae/diffusion_pytorch_model.safetensors"] = weightsOf(8)
	files["text_encoder/model.safetensors"] = weightsOf(9)
	files["text_encoder/pytorch_model.bin"] = []byte("pickled")
	return files
}

// weightsOf returns a small weight file.
func weightsOf(seed uint64) []byte {
	c := world.NewCheckpoint(seed)
	c.Add("w.weight", "BF16", 0, 4, 4)
	return c.File()
}

// forged is a DF11 model that is being forged. Its original is the one of the honest model.
type forged struct {
	*forger
	of    string
	files map[string][]byte
	fit   bool // the manifest is rewritten to fit the files at the end
}

func (g *forger) forge(of string, fit bool, edit func(f *forged)) *forged {
	f := &forged{forger: g, of: of, files: maps.Clone(g.models[of]), fit: fit}
	edit(f)
	if fit {
		f.relist()
	}
	return f
}

// original returns the repo of the honest model's original.
func (f *forged) original() string {
	name, _, _ := strings.Cut(f.of, "2")
	return name
}

// relist makes the manifest list the files that exist, with the SHA-256 of each.
func (f *forged) relist() {
	f.manifest(func(m *metadata.Manifest) {
		kinds := map[string]metadata.Kind{}
		for _, o := range m.Outputs {
			kinds[o.Path] = o.Kind
		}
		m.Outputs = nil
		for _, name := range slices.Sorted(maps.Keys(f.files)) {
			if name == names.Manifest || name == ".gitattributes" {
				continue
			}
			o := metadata.OutputFile{Path: name, Kind: metadata.KindCopied, Size: int64(len(f.files[name])), SHA256: world.Sum(f.files[name])}
			if kinds[name] != "" {
				o.Kind = kinds[name]
			}
			m.Outputs = append(m.Outputs, o)
		}
		m.Units = slices.DeleteFunc(m.Units, func(u metadata.Unit) bool { return f.files[u.File] == nil })
	})
}

// manifest changes the manifest if one exists and is readable.
func (f *forged) manifest(edit func(m *metadata.Manifest)) {
	m, err := metadata.ParseManifest(f.files[names.Manifest], 0)
	if err != nil {
		return
	}
	edit(m)
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		f.Fatal(err)
	}
	f.files[names.Manifest] = b
}

// set writes a file.
func (f *forged) set(name, text string) { f.files[name] = []byte(text) }

// take writes a file of another model.
func (f *forged) take(name, model, from string) {
	b, ok := f.models[model][from]
	if !ok {
		f.Fatalf("%s has no %s", model, from)
	}
	f.files[name] = b
}

// move puts the files at the root, except for some, into a folder.
func (f *forged) move(dir string, except ...string) {
	for name, b := range maps.Clone(f.files) {
		if !strings.Contains(name, "/") && !slices.Contains(except, name) {
			delete(f.files, name)
			f.files[dir+name] = b
		}
	}
}

// edit replaces a text in a file.
func (f *forged) edit(name, from, to string) {
	if !bytes.Contains(f.files[name], []byte(from)) {
		f.Fatalf("%s has no %q: %s", name, from, f.files[name])
	}
	f.files[name] = bytes.Replace(f.files[name], []byte(from), []byte(to), 1)
}

// adds adds a file of weights.
func adds(name string) func(f *forged) {
	return func(f *forged) { f.files[name] = weightsOf(1) }
}

// edits replaces a text in a file.
func edits(name, from, to string) func(f *forged) {
	return func(f *forged) { f.edit(name, from, to) }
}

// changes changes one tensor.
func changes(file, tensor string, edit func(x *world.Tensor)) func(f *forged) {
	return func(f *forged) {
		f.tensors(file, func(list []world.Tensor) []world.Tensor {
			i := slices.IndexFunc(list, func(x world.Tensor) bool { return x.Name == tensor })
			if i < 0 {
				f.Fatalf("%s has no tensor %s", file, tensor)
			}
			edit(&list[i])
			return list
		})
	}
}

// tensors changes the tensors of a safetensors file, and writes them whether they are valid or not.
func (f *forged) tensors(name string, edit func(list []world.Tensor) []world.Tensor) {
	b := f.files[name]
	h, err := safetensors.ReadHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		f.Fatal(err)
	}
	var list []world.Tensor
	for _, x := range h.ByOffset() {
		list = append(list, world.Tensor{
			Name: x.Name, DType: string(x.DType), Shape: x.Shape,
			Data: bytes.Clone(b[h.DataStart()+x.Begin : h.DataStart()+x.End]),
		})
	}
	f.files[name] = world.Safetensors(edit(list))
}

// without takes a tensor, or several whose names end alike, out of a file.
func without(file, suffix string) func(f *forged) {
	return func(f *forged) {
		f.tensors(file, func(list []world.Tensor) []world.Tensor {
			return slices.DeleteFunc(list, func(x world.Tensor) bool { return strings.HasSuffix(x.Name, suffix) })
		})
	}
}

// with adds a tensor to a file.
func with(file string, x world.Tensor) func(f *forged) {
	return func(f *forged) {
		f.tensors(file, func(list []world.Tensor) []world.Tensor { return append(list, x) })
	}
}

// says changes the manifest.
func says(edit func(m *metadata.Manifest)) func(f *forged) {
	return func(f *forged) { f.manifest(edit) }
}

// place puts a forgery into a folder if its manifest fits, and otherwise into a repo, which
// publishes hashes.
func (f *forged) place(name string) (at string) {
	if f.fit {
		return f.folder()
	}
	at = "anybody/" + strings.Map(letters, name)
	f.AddRepo(at, f.files)
	return at
}

// folder writes a forgery into a folder.
func (f *forged) folder() (dir string) {
	dir = filepath.Join(f.TempDir(), "m")
	world.WriteAll(f.T, dir, f.files)
	return dir
}

// letters keeps what a repo's name may hold.
func letters(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

// flipBit flips the lowest bit of the byte in the middle.
func flipBit(x *world.Tensor) { x.Data[len(x.Data)/2] ^= 1 }

// flipWeight changes a weight without a trace in headers and tables.
var flipWeight = changes("model_layers_1.safetensors", "model.layers.1.sign_mantissa", flipBit)

// request opens a pull request to a model with files, as anyone may, and returns its commit.
func (g *forger) request(model string, files map[string][]byte) (commit string) {
	ref := fmt.Sprintf("refs/pr/%d", len(g.Refs(model)))
	g.CreateBranch(model, ref, "main")
	return g.Push(model, ref, files)
}
