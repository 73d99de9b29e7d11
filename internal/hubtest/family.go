package hubtest

import (
	"encoding/json"
	"fmt"
	"math"
)

// family is a transformers architecture.
type family struct {
	architecture, modelType string
	qkNorm, qkvBias         bool
}

// tensors lists the weights in the order of the class definition.
func (f family) tensors(seed uint64, o ModelOptions) []tensor {
	var out []tensor
	add := func(name string, std float64, shape ...int) {
		out = append(out, tensor{name: name, shape: shape, seed: seed, std: std})
	}
	matrix := func(name string, rows, cols int) {
		add(name, 0.8/math.Sqrt(float64(cols)), rows, cols)
	}
	matrix("model.embed_tokens.weight", o.Vocab, o.Hidden)
	for l := range o.Layers {
		f.layer(fmt.Sprintf("model.layers.%d.", l), o, add, matrix)
	}
	add("model.norm.weight", 0, o.Hidden)
	if !o.Tied || o.StoreTied {
		matrix("lm_head.weight", o.Vocab, o.Hidden)
	}
	if o.StoreTied {
		out[len(out)-1].same = "model.embed_tokens.weight"
	}
	return out
}

func (f family) layer(p string, o ModelOptions, add func(string, float64, ...int),
	matrix func(string, int, int)) {
	q, kv := o.Heads*o.HeadDim, o.KVHeads*o.HeadDim
	for _, proj := range []struct {
		name string
		rows int
	}{{"q_proj", q}, {"k_proj", kv}, {"v_proj", kv}} {
		matrix(p+"self_attn."+proj.name+".weight", proj.rows, o.Hidden)
		if f.qkvBias {
			add(p+"self_attn."+proj.name+".bias", 0.5, proj.rows)
		}
	}
	matrix(p+"self_attn.o_proj.weight", o.Hidden, q)
	if f.qkNorm {
		add(p+"self_attn.q_norm.weight", 0, o.HeadDim)
		add(p+"self_attn.k_norm.weight", 0, o.HeadDim)
	}
	matrix(p+"mlp.gate_proj.weight", o.Intermediate, o.Hidden)
	matrix(p+"mlp.up_proj.weight", o.Intermediate, o.Hidden)
	matrix(p+"mlp.down_proj.weight", o.Hidden, o.Intermediate)
	add(p+"input_layernorm.weight", 0, o.Hidden)
	add(p+"post_attention_layernorm.weight", 0, o.Hidden)
}

// config is config.json as transformers writes it: sorted by key, floats as Python prints them.
func (f family) config(o ModelOptions) []byte {
	config := map[string]any{
		"architectures": []string{f.architecture}, "attention_bias": f.qkvBias,
		"attention_dropout": json.Number("0.0"),
		"bos_token_id":      0, "eos_token_id": 1, "head_dim": o.HeadDim, "hidden_act": "silu",
		"hidden_size":       o.Hidden,
		"initializer_range": json.Number("0.02"), "intermediate_size": o.Intermediate,
		"max_position_embeddings": 2048,
		"model_type":              f.modelType, "num_attention_heads": o.Heads,
		"num_hidden_layers":   o.Layers,
		"num_key_value_heads": o.KVHeads, "rms_norm_eps": json.Number("1e-05"), "rope_scaling": nil,
		"rope_theta":          json.Number("500000.0"),
		"tie_word_embeddings": o.Tied, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
		"use_cache":  true,
		"vocab_size": o.Vocab,
	}
	if f.modelType == "llama" {
		config["mlp_bias"] = false
	}
	return indent(config)
}

// indent writes JSON as Python does with an indent of 2.
func indent(v any) []byte {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("hubtest: internal error: " + err.Error())
	}
	return append(data, '\n')
}

// smallFiles are the files next to the weights.
func (f family) smallFiles(o ModelOptions) map[string][]byte {
	return map[string][]byte{
		attributesFile: []byte(defaultAttributes),
		"config.json":  f.config(o),
		"generation_config.json": []byte(
			"{\n  \"_from_model_config\": true,\n  \"bos_token_id\": 0,\n  \"eos_token_id\": 1,\n  \"transformers_version\": \"4.51.3\"\n}\n"),
		"tokenizer.json": []byte(
			"{\n  \"version\": \"1.0\",\n  \"added_tokens\": [],\n  \"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}\n}\n"),
		"tokenizer_config.json": []byte(
			"{\n  \"bos_token\": \"<|begin|>\",\n  \"chat_template\": \"{% for m in messages %}{{ m['content'] }}{% endfor %}\",\n  \"eos_token\": \"<|end|>\",\n  \"model_max_length\": 2048,\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n"),
		"special_tokens_map.json": []byte(
			"{\n  \"bos_token\": \"<|begin|>\",\n  \"eos_token\": \"<|end|>\"\n}\n"),
		"LICENSE": []byte(
			"Apache License\nVersion 2.0, January 2004\nhttps://www.apache.org/licenses/LICENSE-2.0\n\nThe weights of this model are random numbers.\n"),
		"README.md": f.readme(o),
	}
}

func (f family) readme(o ModelOptions) []byte {
	return fmt.Appendf(nil,
		"---\nlicense: apache-2.0\nlanguage:\n- en\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- %s\n- test\n---\n\n# A generated model\n\n%d layers, hidden size %d. The weights are random numbers that look trained.\n",
		f.modelType, o.Layers, o.Hidden)
}

// indexJSON is model.safetensors.index.json as transformers writes it.
func indexJSON(shards []*shard) []byte {
	where, total := map[string]string{}, int64(0)
	for _, s := range shards {
		for _, t := range s.tensors {
			where[t.name] = s.path
			total += t.nBytes()
		}
	}
	return indent(map[string]any{"metadata": map[string]any{"total_size": total},
		"weight_map": where})
}

// extraFiles are files next to the weights that a converter must leave out, and an image that it
// must copy.
func extraFiles(first *shard) map[string][]byte {
	copied := make([]byte, first.size)
	_, _ = first.ReadAt(copied, 0)
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 256)...)
	return map[string][]byte{
		"consolidated.safetensors":         copied,
		"original/consolidated.00.pth":     []byte("PK\x03\x04 not a real archive\x00"),
		"original/params.json":             []byte("{\"dim\": 64}\n"),
		"original/tokenizer.model":         []byte("binary\x00tokenizer"),
		"pytorch_model.bin":                []byte("PK\x03\x04 not a real archive either\x00"),
		"figures/loss curve #1.png":        png,
		"USE_POLICY.md":                    []byte("# Use policy\n\nBe kind.\n"),
		"onnx/model.onnx":                  []byte("\x08\x07onnx\x00"),
		"special/\u00fcber/no\u0308te.txt": []byte("names outside ASCII\n"),
	}
}
