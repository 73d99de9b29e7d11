package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// hostile is a name that would be markup. forged is that, turns what follows, runs as an address, and
// is long.
const hostile = `<img src=x onerror=alert(1)>"'&`

var forged = "javascript:alert(1)//" + hostile + "\u202e" + strings.Repeat("long", 2500)

// addModels adds a model of each layout, and repos that cannot be converted.
func addModels(s *hubtest.Server) {
	type options = hubtest.ModelOptions
	for name, m := range map[string]*hubtest.Model{
		"llama":  hubtest.NewLlama(1, options{}),
		"shards": hubtest.NewLlama(2, options{ShardBytes: 200_000, ExtraFiles: true}),
		"scattered": hubtest.NewLlama(3,
			options{ShardBytes: 100_000, Order: hubtest.OrderScattered, Layers: 12}),
		"tied":   hubtest.NewLlama(4, options{Tied: true}),
		"stored": hubtest.NewLlama(5, options{Tied: true, StoreTied: true}),
		"qwen2":  hubtest.NewQwen2(6, options{}),
		"qwen3":  hubtest.NewQwen3(7, options{Layers: 5}),
		"hostile": hubtest.NewLlama(8,
			options{Extra: map[string][]byte{"config.json": hostileConfig()}}),
		"large": hubtest.NewLlama(9,
			options{Layers: 8, Hidden: 1024, Vocab: 8192, ShardBytes: 50_000_000}),
	} {
		s.AddModel("org/"+name, m)
	}
	s.AddModel("org/gated", hubtest.NewLlama(10, options{}), hubtest.Gated("auto"))
	s.AddModel("org/terms", hubtest.NewLlama(12, options{}), hubtest.Gated("auto"))
	s.AddModel("ann/private", hubtest.NewLlama(11, options{}), hubtest.Private())
	linear := map[string][]int64{"blocks.0.attn.q.weight": {64, 64},
		"blocks.0." + hostile + ".weight": {64, 64}, "blocks.1.attn.q.weight": {64, 64}}
	config := func(text string) []byte { return []byte(text) }
	for name, files := range map[string]map[string][]byte{
		"f16": {"config.json": config(
			`{"model_type":"llama","architectures":["LlamaForCausalLM"]}`),
			"model.safetensors": zeros("F16", linear)},
		"turned": {"config.json": config(
			`{"model_type":"llama","architectures":["LlamaForCausalLM"]}`),
			"model.safetensors": zeros("F16",
				map[string][]int64{"a.\u202egnp.exe.weight": {64, 64}})},
		"f32": {"config.json": config(
			`{"model_type":"llama","architectures":["LlamaForCausalLM"]}`),
			"model.safetensors": zeros("F32", linear)},
		"unknown": {"config.json": config(
			`{"model_type":"new","architectures":["NewForCausalLM"]}`),
			"model.safetensors": zeros("BF16", linear)},
		"diffusers": {"model_index.json": config(`{"_class_name":"NewPipeline"}`),
			"transformer/config.json": config(
				`{"_class_name":"NewTransformer2DModel"}`),
			"transformer/diffusion_pytorch_model.safetensors": zeros("BF16", linear)},
		"forged": {"config.json": config(
			`{"model_type":"new","architectures":["NewForCausalLM"]}`),
			hostile + ".txt": config("nothing"),
			"model.safetensors": zeros("BF16",
				map[string][]int64{"blocks.0.a.weight": {64, 64}, "blocks.1.a.weight": {64, 64},
					"blocks.0." + forged[:400] + ".weight": {64, 64}, forged[:500]: {64}})},
		"several": {"a.safetensors": zeros("BF16", linear), "b.safetensors": zeros("BF16", linear)},
		"single":  {"some-model.safetensors": zeros("BF16", linear)},
		"gguf":    {"model-Q4_K_M.gguf": []byte("GGUF")},
		"pickle":  {"config.json": config(`{}`), "pytorch_model.bin": []byte("\x80\x02}")},
		"adapter": {"adapter_config.json": config(`{}`),
			"adapter_model.safetensors": zeros("BF16",
				map[string][]int64{"lora_A.weight": {8, 64}})},
		"empty": {"README.md": config("nothing")},
	} {
		s.AddRepo("org/"+name, files)
	}
}

// hostileConfig is that of a Llama-shaped model, with a name in it that the program repeats.
func hostileConfig() []byte {
	var c map[string]any
	check(json.Unmarshal(hubtest.NewLlama(8, hubtest.ModelOptions{}).Small["config.json"], &c))
	c["architectures"] = []string{"Hostile" + hostile}
	c["model_type"] = hostile
	b, err := json.Marshal(c)
	check(err)
	return b
}

// forge makes copies of a DF11 repo whose manifest has a forged name, a different one in each, and
// returns their number.
func forge(hub *hubtest.Server, from, to string) int {
	changes := []func(m map[string]any){
		func(m map[string]any) { m["source"].(map[string]any)["repo"] = forged },
		func(m map[string]any) { m["source"].(map[string]any)["commit"] = forged },
		func(m map[string]any) { m["tool"].(map[string]any)["version"] = forged },
		func(m map[string]any) { m["plan"].(map[string]any)["layout"] = forged },
		func(m map[string]any) { m["units"].([]any)[0].(map[string]any)["path"] = forged },
		func(m map[string]any) { m["files"].([]any)[0].(map[string]any)["path"] = forged },
	}
	for i, change := range changes {
		files := filesOf(hub, from)
		var manifest map[string]any
		check(json.Unmarshal(files["df11-manifest.json"], &manifest))
		change(manifest)
		var err error
		files["df11-manifest.json"], err = json.Marshal(manifest)
		check(err)
		hub.AddRepo(fmt.Sprintf("%s-%d", to, i), files)
	}
	return len(changes)
}

// filesOf returns the files of a repo.
func filesOf(hub *hubtest.Server, repo string) map[string][]byte {
	files := map[string][]byte{}
	for name := range hub.Files(repo, "main") {
		b, err := hub.ReadFile(repo, "main", name)
		check(err)
		files[name] = b
	}
	return files
}

// zeros is a file of tensors of zeros.
func zeros(dtype safetensors.DType, shapes map[string][]int64) []byte {
	var tensors []safetensors.Entry
	for name, shape := range shapes {
		tensors = append(tensors, safetensors.Entry{Name: name, DType: dtype, Shape: shape})
	}
	h, err := safetensors.NewHeader(nil, tensors)
	check(err)
	return append(h.Bytes(), make([]byte, h.Size()-h.DataStart())...)
}
