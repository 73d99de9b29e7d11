package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// expertsModel has fused experts. Of slicesModel, gate_up_proj is cut.
const expertsModel, slicesModel = "org/experts", "org/experts2 slices"

// slicesDict cuts gate_up_proj.
const slicesDict = `{"model\\.layers\\.\\d+\\.mlp\\.experts\\.gate_up_proj\\.(0|2|5)": [],
	"model\\.layers\\.\\d+\\.mlp\\.experts\\.down_proj": []}`

// expertFiles returns a small model whose layers have all experts in two tensors.
func expertFiles(layers int) map[string][]byte {
	c := world.NewCheckpoint(3)
	c.Block("", "model.embed_tokens", "lm_head")
	for i := range layers {
		layer := fmt.Sprintf("model.layers.%d.", i)
		c.Block(layer, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "input_layernorm", "mlp.router")
		c.Add(layer+"mlp.experts.gate_up_proj", "BF16", 0, 6, 32, 48)
		c.Add(layer+"mlp.experts.gate_up_proj_bias", "BF16", 0, 6, 32)
		c.Add(layer+"mlp.experts.down_proj", "BF16", 0, 6, 48, 16)
	}
	return map[string][]byte{"model.safetensors": c.File(),
		"config.json": []byte(`{"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "num_hidden_layers": ` + strconv.Itoa(layers) + `, "num_local_experts": 6, "tie_word_embeddings": false}`)}
}

// renameUnit renames a unit's arrays in a file, and keeps the others.
func renameUnit(file, from, to string) func(f *forged) {
	return func(f *forged) {
		f.tensors(file, func(list []world.Tensor) []world.Tensor {
			for i := range list {
				if rest, ok := strings.CutPrefix(list[i].Name, from+"."); ok {
					list[i].Name = to + "." + rest
				}
			}
			return list
		})
	}
}

// TestParameterForgeries checks that forged units on parameters are refused: a wrong order, wrong
// counts, a parameter that another unit fills too, slices that overlap or leave out rows.
func TestParameterForgeries(t *testing.T) {
	const experts = "model_layers_0_mlp_experts.safetensors"
	const inner = "model_layers_0_mlp_experts_gate_up_proj_"
	const unit = "model.layers.0.mlp.experts"
	g := newForger(t)
	g.add(expertsModel, expertFiles(2))
	dict := filepath.Join(t.TempDir(), "dict.json")
	world.Must(t, os.WriteFile(dict, []byte(slicesDict), 0o600))
	g.models[slicesModel] = g.convert(expertsModel, "--pattern-dict", dict)
	for _, model := range []string{expertsModel, slicesModel} {
		if !strings.Contains(string(g.models[model]["config.json"]), `"version": "0.5.0+parameters"`) {
			t.Fatalf("%s: %s", model, g.models[model]["config.json"])
		}
		g.check(g.forge(model, false, func(*forged) {}), "honest "+model, []string{nothing})
	}
	for _, x := range []struct {
		name, model string
		forge       func(f *forged)
		said        []string
	}{
		{"parameters in another order", expertsModel, func(f *forged) {
			text := string(f.files["config.json"])
			text = strings.Replace(text, "gate_up_proj", "x", 1)
			text = strings.Replace(strings.Replace(text, "down_proj", "gate_up_proj", 1), `"x"`, `"down_proj"`, 1)
			f.set("config.json", text)
		}, []string{wrong}},
		{"where a parameter ends", expertsModel, changes(experts, unit+".split_positions", func(x *world.Tensor) { x.Data[0]++ }), []string{wrong}},
		{"a parameter left out of the dict", expertsModel, func(f *forged) { f.edit("config.json", `"gate_up_proj",`, ``) }, []string{wrong}},
		{"the official version", expertsModel, func(f *forged) {
			f.edit("config.json", `"version": "0.5.0+parameters",`, `"version": "0.5.0", "threads_per_block": [512], "bytes_per_thread": 8,`)
		}, []string{wrong}},
		{"the official members", expertsModel, func(f *forged) {
			f.edit("config.json", `"pattern_dict": {`, `"threads_per_block": [512], "bytes_per_thread": 8, "pattern_dict": {`)
		}, []string{wrong + "threads_per_block"}},
		{"an unknown extension", expertsModel, func(f *forged) { f.edit("config.json", "+parameters", "+parameters.more") }, []string{wrong + "extension"}},
		{"a plain parameter next to its unit", expertsModel, with(experts, world.Tensor{Name: unit + ".down_proj", DType: "BF16",
			Shape: []int64{6, 48, 16}, Data: make([]byte, 2*6*48*16)}), []string{wrong + "stored plainly"}},
		{"a second unit for a parameter", expertsModel, func(f *forged) {
			const file = "model_layers_0_mlp_experts_down_proj.safetensors"
			f.files[file] = f.models[slicesModel][file]
			f.edit("config.json", `"pattern_dict": {`, `"pattern_dict": {"model\\.layers\\.0\\.mlp\\.experts\\.down_proj": [],`)
		}, []string{wrong}},
		{"overlapping slices", slicesModel, func(f *forged) {
			renameUnit(inner+"2.safetensors", unit+".gate_up_proj.2", unit+".gate_up_proj.1")(f)
			f.edit("config.json", "(0|2|5)", "[0-25]")
		}, []string{wrong}},
		{"a slice from the end", slicesModel, func(f *forged) { f.edit("config.json", "(0|2|5)", "[1-5]") }, []string{wrong}},
		{"a slice less", slicesModel, func(f *forged) { delete(f.files, inner+"5.safetensors") }, []string{wrong}},
		{"two slices exchanged", slicesModel, func(f *forged) {
			renameUnit(inner+"0.safetensors", unit+".gate_up_proj.0", unit+".gate_up_proj.x")(f)
			renameUnit(inner+"2.safetensors", unit+".gate_up_proj.2", unit+".gate_up_proj.0")(f)
			renameUnit(inner+"0.safetensors", unit+".gate_up_proj.x", unit+".gate_up_proj.2")(f)
		}, []string{wrong}},
		{"a bit of a slice", slicesModel, changes(inner+"2.safetensors", unit+".gate_up_proj.2.sign_mantissa", flipBit), []string{nothing, wrong + "differs from"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			g := &forger{T: t, Server: g.Server, models: g.models, local: g.local}
			g.check(g.forge(x.model, true, x.forge), x.name, x.said)
		})
	}
}
