package fits_test

import (
	"math"
	"testing"

	"github.com/df11-convert/df11-convert/internal/fits"
)

// TestCache computes the bytes of the keys and values of 1000 tokens for real configs, as
// transformers' caches allocate them.
func TestCache(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		want   int64
	}{
		"Llama-3.1-8B": {`{"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
			"hidden_size": 4096}`, 131_072_000},
		"Qwen3-4B, head_dim is not hidden/heads": {`{"num_hidden_layers": 36, "num_attention_heads": 32,
			"num_key_value_heads": 8, "hidden_size": 2560, "head_dim": 128}`, 147_456_000},
		"GPT-2": {`{"n_layer": 12, "n_head": 12, "n_embd": 768}`, 36_864_000},
		"Falcon-40B, keys and values are repeated": {`{"num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8,
			"hidden_size": 8192, "multi_query": true, "new_decoder_architecture": true}`, 60 * 4 * 128 * 64 * 1000},
		"MiniCPM3, values as wide as hidden/heads": {`{"num_hidden_layers": 62, "num_attention_heads": 40, "num_key_value_heads": 40,
			"hidden_size": 2560, "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32}`, 62 * 2 * 40 * 160 * 1000},
		"DeepSeek-V3 keeps every head": {`{"num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
			"hidden_size": 7168, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}`,
			61 * 2 * 128 * 320 * 1000},
		"a text model inside": {`{"text_config": {"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 4}}`, 64_000},
		"sliding windows": {`{"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 4, "sliding_window": 100,
			"layer_types": ["sliding_attention", "full_attention"]}`, 35_200},
		"every third layer sees all": {`{"num_hidden_layers": 3, "num_attention_heads": 2, "head_dim": 4,
			"sliding_window": 100, "sliding_window_pattern": 3}`, 38_400},
		"linear attention and Mamba keep a state": {`{"num_hidden_layers": 3, "num_attention_heads": 2, "head_dim": 4,
			"layer_types": ["linear_attention", "mamba", "attention"]}`, 32_000},
		"an encoder and a decoder": {`{"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 4,
			"is_encoder_decoder": true}`, 0},
		"a diffusion model": {`{"_class_name": "FluxTransformer2DModel", "num_layers": 19, "attention_head_dim": 128}`, 0},
		"nonsense":          {`{"num_hidden_layers": 1e300, "num_attention_heads": -1}`, 0},
		"no JSON":           {`{`, 0},
	} {
		cache := fits.ReadCache([]byte(c.config))
		if got := cache.Bytes(1000, 1); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
		if cache.Bytes(1000, 3) != 3*c.want {
			t.Errorf("%s: three sequences do not take three times as much", name)
		}
		if n := cache.Longest(c.want*4, 4); c.want > 0 && (n < 1000 || cache.Bytes(n, 4) > 4*c.want) {
			t.Errorf("%s: %d tokens fit where 1000 do", name, n)
		}
	}
	huge := fits.ReadCache([]byte(`{"num_hidden_layers": 9999, "num_attention_heads": 999999999, "head_dim": 999999999}`))
	if n := huge.Bytes(math.MaxInt64, math.MaxInt64); n != 1<<62 || huge.Bytes(1, 1) <= 0 || huge.Longest(1<<50, math.MaxInt64) != 0 {
		t.Errorf("%d bytes", n)
	}
	most := fits.ReadCache([]byte(`{"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 4, "max_position_embeddings": 4096}`))
	if n := most.Longest(1<<40, 1); n != 4096 {
		t.Errorf("a context of %d, the config allows 4096", n)
	}
}

// Cards are found by the names that people write.
func TestCard(t *testing.T) {
	for name, want := range map[string]int64{
		"4090": 24, "RTX 4090": 24, "rtx-4090": 24, "NVIDIA GeForce RTX 3060": 0, "H100": 80, "l40s": 48, "24GB": 0, "": 0,
	} {
		if got := fits.Card(name); got != want {
			t.Errorf("%s: %d GiB, want %d", name, got, want)
		}
	}
}
