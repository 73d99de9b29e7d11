package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// checkpoint is a small model in the making: tensors by name, in order.
type checkpoint struct {
	entries []safetensors.Entry
	data    map[string][]byte
	rng     *rand.Rand
}

func newCheckpoint(seed uint64) *checkpoint {
	return &checkpoint{data: map[string][]byte{}, rng: rand.New(rand.NewPCG(seed, 1))}
}

// add makes a tensor of normal numbers; F32 values are exact BF16, but for the first inexact ones.
func (c *checkpoint) add(name string, dtype safetensors.DType, inexact int, shape ...int64) {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	var b []byte
	for i := range n {
		bits := math.Float32bits(float32(0.05*c.rng.NormFloat64())) &^ 0xffff
		switch {
		case dtype == "BF16" || dtype == "F16":
			b = binary.LittleEndian.AppendUint16(b, uint16(bits>>16))
			continue
		case dtype == "F8_E4M3" || dtype == "I8":
			b = append(b, byte(bits>>24))
			continue
		case int(i) < inexact:
			bits |= 1
		}
		b = binary.LittleEndian.AppendUint32(b, bits)
	}
	c.entries = append(c.entries, safetensors.Entry{Name: name, DType: dtype, Shape: shape})
	c.data[name] = b
}

// write writes the checkpoint as one file.
func (c *checkpoint) write(t *testing.T, file string) {
	t.Helper()
	writeTo(t, file, c.file())
}

// file is the checkpoint as one file.
func (c *checkpoint) file() []byte {
	l, err := safetensors.NewHeader([]safetensors.MetadataEntry{{Key: "format", Value: "pt"}}, c.entries)
	if err != nil {
		panic(err)
	}
	b := l.Bytes()
	for _, x := range l.Tensors {
		b = append(b, c.data[x.Name]...)
	}
	return b
}

func writeTo(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		writeTo(t, filepath.Join(dir, filepath.FromSlash(name)), b)
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// program runs the program in this process.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	u := newUI(files[0], files[1])
	code = execute(t.Context(), u, args)
	stdout, stderr = string(mustRead(t, files[0].Name())), string(mustRead(t, files[1].Name()))
	if slices.Contains(args, "--json") {
		if err := checkDocument(code, stdout); err != nil {
			t.Error(err)
		}
	}
	return code, stdout, stderr
}

// must runs the program, which has to end well.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, diag := program(t, args...)
	if code != exitOK {
		t.Fatalf("%v: exit %d: %s", args, code, diag)
	}
	return out
}

// block adds the tensors of one block; modules that end in "norm" get a 1-D weight.
func (c *checkpoint) block(prefix string, modules ...string) {
	for _, m := range modules {
		if strings.HasSuffix(m, "norm") {
			c.add(prefix+m+".weight", "BF16", 0, 32)
			continue
		}
		c.add(prefix+m+".weight", "BF16", 0, 32, 48)
		c.add(prefix+m+".bias", "BF16", 0, 32)
	}
}

// fluxFiles are a diffusers pipeline with a transformer, a VAE and a tokenizer.
func fluxFiles() map[string][]byte {
	c := newCheckpoint(1)
	c.block("x_embedder", "")
	for i := range 2 {
		c.block(fmt.Sprintf("transformer_blocks.%d.", i), "norm1.linear", "norm1_context.linear", "attn.to_q", "attn.to_k", "attn.to_v",
			"attn.add_k_proj", "attn.add_v_proj", "attn.add_q_proj", "attn.to_out.0", "attn.to_add_out", "ff.net.0.proj", "ff.net.2",
			"ff_context.net.0.proj", "ff_context.net.2", "attn.q_norm")
		c.block(fmt.Sprintf("single_transformer_blocks.%d.", i), "norm.linear", "proj_mlp", "proj_out", "attn.to_q", "attn.to_k", "attn.to_v")
	}
	vae := newCheckpoint(2)
	vae.add("decoder.conv_in.weight", "F32", 9, 4, 4, 3, 3)
	return map[string][]byte{
		"model_index.json":                []byte(`{"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"], "vae": ["diffusers", "AutoencoderKL"], "tokenizer": ["transformers", "CLIPTokenizer"], "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"]}`),
		"transformer/config.json":         []byte(`{"_class_name": "FluxTransformer2DModel", "num_layers": 2}`),
		"vae/config.json":                 []byte(`{"_class_name": "AutoencoderKL"}`),
		"scheduler/scheduler_config.json": []byte(`{"shift": 3.0}`),
		"tokenizer/vocab.json":            []byte(`{"a": 0}`),
		"LICENSE.md":                      []byte("a licence"),
		"flux1-dev.gguf":                  []byte("weights in another format"),
		"transformer/diffusion_pytorch_model.safetensors": c.file(),
		"vae/diffusion_pytorch_model.safetensors":         vae.file(),
	}
}

// comfyFlux is a checkpoint with ComfyUI's names.
func comfyFlux(prefix string) []byte {
	c := newCheckpoint(3)
	fluxBlocks(c, prefix)
	return c.file()
}

// severalModels is a checkpoint of which one model is converted.
func severalModels() []byte {
	c := newCheckpoint(3)
	c.add("first_stage_model.decoder.conv.weight", "F32", 3, 4, 4)
	c.add("cond_stage_model.embedding.weight", "BF16", 0, 4, 4)
	fluxBlocks(c, "model.diffusion_model.")
	return c.file()
}

// fluxBlocks adds the tensors of a small Flux with ComfyUI's names.
func fluxBlocks(c *checkpoint, prefix string) {
	c.block(prefix, "img_in", "txt_in", "guidance_in.in_layer", "final_layer.linear")
	for i := range 2 {
		c.block(fmt.Sprintf("%sdouble_blocks.%d.", prefix, i), "img_mod.lin", "img_attn.qkv", "img_attn.proj", "img_mlp.0", "img_mlp.2", "txt_mod.lin",
			"txt_attn.qkv", "txt_attn.proj", "txt_mlp.0", "txt_mlp.2", "img_attn.norm")
		c.block(fmt.Sprintf("%ssingle_blocks.%d.", prefix, i), "linear1", "linear2", "modulation.lin")
	}
}

// llama writes a small Llama with all weights of one type.
func llama(t *testing.T, dir string, dtype safetensors.DType, inexact int, config string) {
	t.Helper()
	writeFiles(t, dir, llamaFiles(dtype, inexact, config))
}

func llamaFiles(dtype safetensors.DType, inexact int, config string) map[string][]byte {
	c := newCheckpoint(4)
	c.add("model.embed_tokens.weight", dtype, 0, 64, 32)
	for i := range 2 {
		for _, m := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"} {
			c.add(fmt.Sprintf("model.layers.%d.%s.weight", i, m), dtype, inexact, 32, 32)
		}
		c.add(fmt.Sprintf("model.layers.%d.input_layernorm.weight", i), dtype, 0, 32)
	}
	c.add("lm_head.weight", dtype, 0, 64, 32)
	return map[string][]byte{
		"model.safetensors": c.file(),
		"config.json":       []byte(`{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "tie_word_embeddings": false` + config + `}`),
	}
}

// refused runs the program, which must end with 5 and one line that holds the words, beside hints.
func refused(t *testing.T, words string, args ...string) {
	t.Helper()
	code, out, diag := program(t, args...)
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(diag), "\n"), func(l string) bool { return !strings.HasPrefix(l, "df11-convert: ") })
	if code != exitRefused || len(lines) != 1 || !strings.Contains(diag, words) || out != "" {
		t.Errorf("%v: exit %d, stdout %q, stderr:\n%s", args, code, out, diag)
	}
}

// TestGoldenSingleFiles: the official single file comes out byte for byte, whether its source is
// called a transformers model, a diffusers model, or a ComfyUI file.
func TestGoldenSingleFiles(t *testing.T) {
	for _, model := range []string{"qknorm", "bias_f32"} {
		golden := filepath.Join("..", "..", "testdata", "golden", "e2e", model)
		weights := mustRead(t, filepath.Join(golden, "source", "model.safetensors"))
		want := mustRead(t, filepath.Join(golden, "single", "model.safetensors"))
		dir := t.TempDir()
		writeTo(t, filepath.Join(dir, "d", "diffusion_pytorch_model.safetensors"), weights)
		writeTo(t, filepath.Join(dir, "d", "config.json"), []byte(`{"_class_name": "SomeTransformer2DModel"}`))
		writeTo(t, filepath.Join(dir, "c", "some.safetensors"), weights)
		for _, c := range []struct{ source, layout, out string }{
			{filepath.Join(golden, "source"), "transformers-single", "model.safetensors"},
			{filepath.Join(dir, "d"), "diffusers-single", "diffusion_pytorch_model.safetensors"},
			{filepath.Join(dir, "c", "some.safetensors"), "single", "some-DF11.safetensors"},
		} {
			out := t.TempDir()
			must(t, c.source, "--layout", c.layout, "--pattern-dict", filepath.Join(golden, "pattern_dict.json"), "-o", out)
			if !bytes.Equal(want, mustRead(t, filepath.Join(out, c.out))) {
				t.Errorf("%s as %s differs from the official file", model, c.layout)
			}
		}
	}
}
