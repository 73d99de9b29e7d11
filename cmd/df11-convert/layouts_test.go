package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// startHub starts a hub that runs in this process use, with a token and an empty cache.
func startHub(t *testing.T, token string, opts ...hubtest.Option) *hubtest.Server {
	t.Helper()
	s := hubtest.Start(t, opts...)
	t.Setenv("HF_ENDPOINT", s.URL)
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_TOKEN", token)
	return s
}

// captured returns a ui that writes to two files, and what closes and reads them.
func captured(t *testing.T) (u *ui, read func() (stdout, stderr string)) {
	t.Helper()
	dir := t.TempDir()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		world.Must(t, err)
		files[i] = f
	}
	return newUI(files[0], files[1]), func() (stdout, stderr string) {
		world.Must(t, errors.Join(files[0].Close(), files[1].Close()))
		return string(world.Read(t, files[0].Name())), string(world.Read(t, files[1].Name()))
	}
}

// program runs the program in this process.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	u, read := captured(t)
	code = execute(t.Context(), u, args)
	stdout, stderr = read()
	if slices.Contains(args, "--json") {
		if err := checkDocument(code, stdout); err != nil {
			t.Error(err)
		}
	}
	return code, stdout, stderr
}

// must runs the program, which must succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, diag := program(t, args...)
	if code != exitOK {
		t.Fatalf("%v: exit %d: %s", args, code, diag)
	}
	return out
}

// ends runs the program, which must end with an exit code and print the words.
func ends(t *testing.T, exit int, words string, args ...string) {
	t.Helper()
	code, out, diag := program(t, args...)
	if code != exit || !strings.Contains(out+diag, words) {
		t.Errorf("%v: exit %d, want %d and %q: %s%s", args, code, exit, words, out, diag)
	}
}

// fluxFiles returns a diffusers pipeline with a transformer, a VAE, and a tokenizer.
func fluxFiles() map[string][]byte {
	c := world.NewCheckpoint(1)
	c.Block("x_embedder", "")
	for i := range 2 {
		c.Block(fmt.Sprintf("transformer_blocks.%d.", i), "norm1.linear", "norm1_context.linear", "attn.to_q", "attn.to_k", "attn.to_v",
			"attn.add_k_proj", "attn.add_v_proj", "attn.add_q_proj", "attn.to_out.0", "attn.to_add_out", "ff.net.0.proj", "ff.net.2",
			"ff_context.net.0.proj", "ff_context.net.2", "attn.q_norm")
		c.Block(fmt.Sprintf("single_transformer_blocks.%d.", i), "norm.linear", "proj_mlp", "proj_out", "attn.to_q", "attn.to_k", "attn.to_v")
	}
	vae := world.NewCheckpoint(2)
	vae.Add("decoder.conv_in.weight", "F32", 9, 4, 4, 3, 3)
	return map[string][]byte{
		"model_index.json":                []byte(`{"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"], "vae": ["diffusers", "AutoencoderKL"], "tokenizer": ["transformers", "CLIPTokenizer"], "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"]}`),
		"transformer/config.json":         []byte(`{"_class_name": "FluxTransformer2DModel", "num_layers": 2}`),
		"vae/config.json":                 []byte(`{"_class_name": "AutoencoderKL"}`),
		"scheduler/scheduler_config.json": []byte(`{"shift": 3.0}`),
		"tokenizer/vocab.json":            []byte(`{"a": 0}`),
		"LICENSE.md":                      []byte("a licence"),
		"flux1-dev.gguf":                  []byte("weights in another format"),
		"transformer/diffusion_pytorch_model.safetensors": c.File(),
		"vae/diffusion_pytorch_model.safetensors":         vae.File(),
	}
}

// denoiserFiles returns a pipeline whose transformer has the tensors of diffusers' Flux.
func denoiserFiles() map[string][]byte { return pipelineOf(denoiser()) }

// pipelineOf returns a pipeline with this transformer.
func pipelineOf(c *world.Checkpoint) map[string][]byte {
	files := fluxFiles()
	files["transformer/diffusion_pytorch_model.safetensors"] = c.File()
	delete(files, "flux1-dev.gguf")
	return files
}

func denoiser() *world.Checkpoint {
	c := world.NewCheckpoint(4)
	c.Block("", "x_embedder", "context_embedder", "time_text_embed.guidance_embedder.linear_1", "proj_out")
	c.Add("norm_out.linear.weight", "BF16", 0, 64, 48)
	c.Add("norm_out.linear.bias", "BF16", 0, 64)
	for i := range 2 {
		block := fmt.Sprintf("transformer_blocks.%d.", i)
		c.Block(block, "norm1.linear", "norm1_context.linear", "attn.to_q", "attn.to_k", "attn.to_v", "attn.add_k_proj", "attn.add_v_proj",
			"attn.add_q_proj", "attn.to_out.0", "attn.to_add_out", "ff.net.0.proj", "ff.net.2", "ff_context.net.0.proj", "ff_context.net.2")
		for _, norm := range []string{"norm_q", "norm_k", "norm_added_q", "norm_added_k"} {
			c.Add(block+"attn."+norm+".weight", "BF16", 0, 32)
		}
		c.Block(fmt.Sprintf("single_transformer_blocks.%d.", i), "norm.linear", "proj_mlp", "proj_out", "attn.to_q", "attn.to_k", "attn.to_v")
	}
	return c
}

// TestTheSourcesNames checks that what rules out a file for ComfyUI is told by the names that the
// source has.
func TestTheSourcesNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, c := range map[string]struct{ f32, want string }{
		"alone":  {"transformer_blocks.0.norm1.linear.weight", ": transformer_blocks.0.norm1.linear.weight is F32, not BF16\n"},
		"joined": {"single_transformer_blocks.1.attn.to_k.weight", ": single_transformer_blocks.1.attn.to_q.weight is BF16 and single_transformer_blocks.1.attn.to_k.weight is F32, but ComfyUI's single_blocks.1.linear1.weight joins them\n"},
	} {
		model := denoiser()
		for i := range model.Tensors {
			if x := &model.Tensors[i]; x.Name == c.f32 {
				x.DType, x.Data = "F32", slices.Concat(x.Data, x.Data)
			}
		}
		world.WriteAll(t, name, pipelineOf(model))
		code, _, diag := program(t, "plan", "./"+name, "--layout", "single")
		if code != exitRefused || !strings.Contains(diag, c.want) {
			t.Errorf("%s: exit %d: %s", name, code, diag)
		}
	}
}

// severalModels returns a checkpoint with several models, one of them to convert.
func severalModels() []byte {
	c := comfyCheckpoint("model.diffusion_model.")
	c.Add("first_stage_model.decoder.conv.weight", "F32", 3, 4, 4)
	c.Add("cond_stage_model.embedding.weight", "BF16", 0, 4, 4)
	return c.File()
}

func comfyFlux(prefix string) []byte { return comfyCheckpoint(prefix).File() }

// comfyCheckpoint returns a small Flux with ComfyUI's names.
func comfyCheckpoint(prefix string) *world.Checkpoint {
	c := world.NewCheckpoint(3)
	c.Block(prefix, "img_in", "txt_in", "guidance_in.in_layer", "final_layer.linear")
	for i := range 2 {
		c.Block(fmt.Sprintf("%sdouble_blocks.%d.", prefix, i), "img_mod.lin", "img_attn.qkv", "img_attn.proj", "img_mlp.0", "img_mlp.2", "txt_mod.lin",
			"txt_attn.qkv", "txt_attn.proj", "txt_mlp.0", "txt_mlp.2", "img_attn.norm")
		c.Block(fmt.Sprintf("%ssingle_blocks.%d.", prefix, i), "linear1", "linear2", "modulation.lin")
	}
	return c
}

// llama writes a small Llama with all weights of one type.
func llama(t *testing.T, dir string, dtype string, inexact int, config string) {
	t.Helper()
	world.WriteAll(t, dir, llamaFiles(dtype, inexact, config))
}

func llamaCheckpoint(dtype string, inexact int) *world.Checkpoint {
	c := world.NewCheckpoint(4)
	c.Add("model.embed_tokens.weight", dtype, 0, 64, 32)
	for i := range 2 {
		for _, m := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"} {
			c.Add(fmt.Sprintf("model.layers.%d.%s.weight", i, m), dtype, inexact, 32, 32)
		}
		c.Add(fmt.Sprintf("model.layers.%d.input_layernorm.weight", i), dtype, 0, 32)
	}
	c.Add("lm_head.weight", dtype, 0, 64, 32)
	return c
}

func llamaFiles(dtype string, inexact int, config string) map[string][]byte {
	return map[string][]byte{
		"model.safetensors": llamaCheckpoint(dtype, inexact).File(),
		"config.json":       []byte(`{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "tie_word_embeddings": false` + config + `}`),
	}
}

// refused runs the program, which must end with 5 and print hints and one line with the words.
func refused(t *testing.T, words string, args ...string) {
	t.Helper()
	code, out, diag := program(t, args...)
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(diag), "\n"), func(l string) bool { return !strings.HasPrefix(l, "df11-convert: ") })
	if code != exitRefused || len(lines) != 1 || !strings.Contains(diag, words) || out != "" {
		t.Errorf("%v: exit %d, stdout %q, stderr:\n%s", args, code, out, diag)
	}
}

// TestGoldenSingleFiles checks that the single file has the official bytes if its source is a diffusers
// model or a ComfyUI file.
func TestGoldenSingleFiles(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"qknorm", "bias_f32"} {
		golden := filepath.Join("..", "..", "testdata", "golden", "e2e", model)
		weights := world.Read(t, filepath.Join(golden, "source", "model.safetensors"))
		want := world.Read(t, filepath.Join(golden, "single", "model.safetensors"))
		dir := t.TempDir()
		world.Write(t, filepath.Join(dir, "d", "diffusion_pytorch_model.safetensors"), weights)
		world.Write(t, filepath.Join(dir, "d", "config.json"), `{"_class_name": "SomeTransformer2DModel"}`)
		world.Write(t, filepath.Join(dir, "c", "some.safetensors"), weights)
		for _, c := range []struct{ source, layout, out string }{
			{filepath.Join(dir, "d"), "diffusers-single", "df11.safetensors"},
			{filepath.Join(dir, "c", "some.safetensors"), "single", "some-DF11.safetensors"},
		} {
			out := t.TempDir()
			must(t, c.source, "--layout", c.layout, "--pattern-dict", filepath.Join(golden, "pattern_dict.json"), "-o", out)
			if !bytes.Equal(want, world.Read(t, filepath.Join(out, c.out))) {
				t.Errorf("%s as %s differs from the official file", model, c.layout)
			}
		}
	}
}

// TestLeftOutIsNamed checks that plan, card, manifest, and verify name the tensors of a checkpoint that
// a conversion leaves out, and that no size and no sentence counts them.
func TestLeftOutIsNamed(t *testing.T) {
	dir := t.TempDir()
	whole, out := filepath.Join(dir, "whole.safetensors"), filepath.Join(dir, "out")
	c := comfyCheckpoint("model.diffusion_model.")
	c.Add("cond_stage_model.embedding.weight", "BF16", 0, 4, 4)
	c.Add("first_stage_model.decoder.conv.weight", "BF16", 0, 512, 512) // more than all others
	world.Write(t, whole, c.File())
	const names = "cond_stage_model.embedding.weight, first_stage_model.decoder.conv.weight"
	if plan := must(t, "plan", whole); !strings.HasPrefix(plan, "102 kB → 77.6 kB (24% smaller") || !strings.Contains(plan, "left out      2 tensors: "+names) {
		t.Errorf("the plan is\n%s", plan)
	}
	must(t, whole, "-o", out)
	card := string(world.Read(t, filepath.Join(out, "README.md")))
	for _, words := range []string{"the same weights of the diffusion model, bit for bit", strings.ReplaceAll(names, "_", `\_`)} {
		if !strings.Contains(card, words) {
			t.Errorf("the card doesn't say %q:\n%s", words, card)
		}
	}
	for _, words := range []string{"evaluation results", "Restore the BF16 files"} {
		if strings.Contains(card, words) {
			t.Errorf("the card says %q", words)
		}
	}
	if m := world.Read(t, filepath.Join(out, "df11-manifest.json")); !bytes.Contains(m, []byte(`"first_stage_model.decoder.conv.weight"`)) {
		t.Errorf("the manifest is %s", m)
	}
	ends(t, exitOK, "weights equal; the original has 2 tensors more, of other models", "verify", out, "--against", whole)
	ends(t, exitOK, `"tensors_left_out": [`, "verify", out, "--against", whole, "--json")
}
