package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestNamedFile checks that a named file is the whole source, whatever lies next to it: another
// single file, a pipeline, or a config. The output is always the same, and is verified against the
// file.
func TestNamedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	world.Write(t, at("alone/flux1.safetensors"), comfyFlux(""))
	whole := world.Read(t, at("alone/flux1.safetensors"))
	world.Write(t, at("two/flux1.safetensors"), whole)
	world.Write(t, at("two/other.safetensors"), comfyFlux(""))
	world.WriteAll(t, at("pipe"), fluxFiles())
	world.Write(t, at("pipe/flux1.safetensors"), whole)
	world.Write(t, at("config/flux1.safetensors"), whole)
	world.Write(t, at("config/config.json"), `{"_class_name": "FluxTransformer2DModel"}`)
	must(t, at("alone/flux1.safetensors"), "-o", at("want"))
	want := world.Read(t, at("want/flux1-DF11.safetensors"))
	for _, source := range [][]string{
		{at("two/flux1.safetensors")}, {at("pipe/flux1.safetensors")}, {at("config/flux1.safetensors")}, {at("pipe"), "--file", "flux1.safetensors"},
	} {
		out := t.TempDir()
		must(t, append(source, "-o", out)...)
		if _, err := os.Stat(filepath.Join(out, "vae")); err == nil {
			t.Errorf("%v: the pipeline's VAE lies next to a single file", source)
		}
		if !bytes.Equal(world.Read(t, filepath.Join(out, "flux1-DF11.safetensors")), want) {
			t.Errorf("%v: the file differs from that of a folder of its own", source)
		}
		must(t, "verify", out, "--against", at("pipe/flux1.safetensors"))
	}
	refused(t, "no folder .", "plan", at("pipe"), "--file", "flux1.safetensors", "--layout", "diffusers")
	refused(t, "several single files", "plan", at("two"))
	if code, _, diag := program(t, "plan", at("two/flux1.safetensors"), "--file", "other.safetensors"); code != exitUsage ||
		!strings.Contains(diag, "--file other.safetensors is given") {
		t.Errorf("two files: exit %d, %s", code, diag)
	}
}

// TestNamedUsualFile checks that a file with the name that its library expects stands for the
// folder around it, and that one of several shards isn't a model.
func TestNamedUsualFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	llama(t, filepath.Join(dir, "llama"), "BF16", 0, "")
	world.WriteAll(t, filepath.Join(dir, "pipe"), fluxFiles())
	shard := filepath.Join(dir, "parts", "model-00001-of-00002.safetensors")
	world.Write(t, shard, world.Read(t, filepath.Join(dir, "llama", "model.safetensors")))
	for source, layout := range map[string]string{
		"llama/model.safetensors":                              "layout        transformers\n",
		"pipe/transformer/diffusion_pytorch_model.safetensors": "layout        diffusers\n",
	} {
		if out := must(t, "plan", filepath.Join(dir, source)); !strings.Contains(out, layout) {
			t.Errorf("%s: %s", source, out)
		}
	}
	refused(t, "only a part of a model", "plan", shard)
}

// TestNoSource checks that plan and convert refuse anything but BF16 safetensors models with the
// same text, which says what to do instead. convert makes no folder.
func TestNoSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"x.gguf", "x.ckpt", "x.bin", "x.pt", "notes.txt"} {
		world.Write(t, at(name), "x")
	}
	lora := world.NewCheckpoint(1)
	lora.Add("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", "BF16", 0, 8, 32)
	lora.Add("base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight", "BF16", 0, 32, 8)
	world.Write(t, at("peft/adapter_model.safetensors"), lora.File())
	world.Write(t, at("peft/adapter_config.json"), `{}`)
	world.Write(t, at("renamed.safetensors"), lora.File())
	world.Write(t, at("folder/model.safetensors"), lora.File())
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 5368709120\n"
	world.Write(t, at("lfs/model.safetensors"), pointer)
	world.Write(t, at("lfs/config.json"), `{"model_type": "llama"}`)
	int8 := world.NewCheckpoint(2)
	int8.Add("model.embed_tokens.weight", "I8", 0, 64, 32)
	for _, b := range []string{"model.layers.0.", "model.layers.1."} {
		int8.Add(b+"mlp.up_proj.weight", "I8", 0, 32, 32)
	}
	world.Write(t, at("int8/model.safetensors"), int8.File())
	world.Write(t, at("int8/config.json"), `{"model_type": "new"}`)
	llama(t, at("fp16"), "F16", 0, "")
	llama(t, at("fp8"), "F8_E4M3", 0, "")
	for _, method := range []string{"gptq", "awq", "mxfp4"} {
		llama(t, at(method), "I32", 0, `, "quantization_config": {"quant_method": "`+method+`", "bits": 4}`)
	}
	world.Write(t, at("gguf/model-Q4_K_M.gguf"), "GGUF")
	world.Write(t, at("pickle/pytorch_model.bin"), "\x80\x02")
	world.Write(t, at("pickle/config.json"), `{"model_type": "llama"}`)
	for name, words := range map[string]string{
		"fp16": "F16", "fp8": "F8", "gptq": "is quantized", "awq": "is quantized", "mxfp4": "is quantized", "gguf": "GGUF", "pickle": "pickle",
		"x.gguf": "start from the original BF16 safetensors repo", "x.ckpt": "save its tensors with safetensors.torch.save_file", "x.bin": "pickle checkpoint",
		"x.pt": "pickle checkpoint", "notes.txt": "neither a folder nor",
		"peft": "merge the adapter", "peft/adapter_model.safetensors": "merge the adapter", "renamed.safetensors": "merge the adapter",
		"folder": "merge the adapter", "lfs": "git lfs pull", "int8": "start from the model's BF16 original",
	} {
		refused(t, words, "plan", at(name))
		refused(t, words, at(name), "-o", at("out"))
		if _, err := os.Stat(at("out")); err == nil {
			t.Fatalf("%s: an output folder was made", name)
		}
	}
}
