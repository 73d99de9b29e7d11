package fits

import (
	"cmp"
	"encoding/json"
	"sort"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/names"
)

// Cache is the size of keys and values, as transformers keeps them in BF16. The zero value takes no
// bytes: the model has no such cache, or its config doesn't say.
type Cache struct {
	layers []layer
	most   int64 // largest context the config allows, in tokens; 0 if it doesn't say
}

// layer is one attention layer: its bytes per token, and the largest number of tokens it keeps, 0
// for all.
type layer struct{ bytes, window int64 }

// ReadCache reads a config.json. Layers with a state of fixed size, such as Mamba, count as
// nothing. A layer counts in full unless the config says that it's a sliding window.
func ReadCache(config []byte) Cache {
	parsed, err := catalog.ReadConfig(names.Config, config)
	if err != nil || catalog.Decode[bool](parsed.Raw["is_encoder_decoder"]) {
		return Cache{}
	}
	m := members(parsed.Raw)
	if parsed.Text != nil {
		m = members(parsed.Text)
	}
	bytes := 2 * m.perToken()
	n := m.number("num_hidden_layers", "n_layer", "num_layers")
	if bytes == 0 || n > 10_000 {
		return Cache{}
	}
	c := Cache{most: m.number("max_position_embeddings", "n_positions")}
	window := m.number("sliding_window")
	for i := range n {
		switch m.kind(i) {
		case "full":
			c.layers = append(c.layers, layer{bytes, 0})
		case "sliding":
			c.layers = append(c.layers, layer{bytes, window})
		}
	}
	return c
}

// members are the members of the text model's config.
type members catalog.Members

// number returns the first of these members that is a number above 0, and not absurdly large.
func (m members) number(keys ...string) int64 {
	for _, key := range keys {
		if n := catalog.Decode[json.Number](m[key]); n != "" {
			if v, err := n.Int64(); err == nil && v > 0 && v < 1e9 {
				return v
			}
		}
	}
	return 0
}

// perToken returns how many values one layer keeps per token.
func (m members) perToken() int64 {
	heads := m.number("num_attention_heads", "n_head")
	if heads == 0 {
		return 0
	}
	dim := m.number("hidden_size", "n_embd") / heads
	if m.number("kv_lora_rank") > 0 {
		// latent attention: transformers keeps the keys and values of every head
		return heads * (m.number("qk_nope_head_dim") + m.number("qk_rope_head_dim") +
			cmp.Or(m.number("v_head_dim"), dim))
	}
	return 2 * cmp.Or(m.number("num_key_value_heads"), heads) * cmp.Or(m.number("head_dim"), dim)
}

// kind returns what layer i keeps: "full", "sliding", or "" for a state of fixed size.
func (m members) kind(i int64) string {
	types := catalog.Decode[[]string](m["layer_types"])
	if types == nil {
		types = catalog.Decode[[]string](m["layers_block_type"])
	}
	switch pattern := m.number("sliding_window_pattern"); {
	case i < int64(len(types)):
		switch t := types[i]; {
		case strings.HasPrefix(t, "sliding"):
			return "sliding"
		case strings.HasPrefix(t, "linear") || !strings.Contains(t, "attention"):
			return ""
		}
	case pattern > 0 && (i+1)%pattern != 0:
		return "sliding"
	}
	return "full"
}

// Bytes returns how many bytes a batch of sequences takes, each with context tokens. No GPU holds
// 1<<62 bytes, so more counts as that.
func (c Cache) Bytes(context, batch int64) int64 {
	var n float64
	for _, l := range c.layers {
		tokens := context
		if l.window > 0 {
			tokens = min(tokens, l.window)
		}
		n += float64(l.bytes) * float64(tokens) * float64(batch)
	}
	return int64(min(n, 1<<62))
}

// longest is more than any model's context.
const longest = 100_000_000

// Longest returns the longest context with which a batch of sequences fits into space bytes. Above
// 1024 tokens, it's rounded down to a multiple of 1024, unless it's the most the config allows. It's
// 0 if the cache is unknown.
func (c Cache) Longest(space, batch int64) int64 {
	if len(c.layers) == 0 {
		return 0
	}
	most := int(cmp.Or(c.most, longest))
	n := sort.Search(most, func(n int) bool { return c.Bytes(int64(n)+1, batch) > space })
	if n > 1024 && n < most {
		n = n / 1024 * 1024
	}
	return int64(n)
}
