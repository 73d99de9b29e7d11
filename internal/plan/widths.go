package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// These functions compare tensors with what a config says of them. They go by what most classes
// have in common, accept what they don't know, and return "" if nothing differs.

// tensors lists all tensors that the output has: those that pass through, then the units' weights.
func (v *division) tensors() []Tensor {
	all := v.plain()
	for _, u := range v.units {
		all = append(all, u.Attrs...)
	}
	return all
}

// otherWidth says that the token embedding has another width than the config's hidden size, although
// the config has no other size for embeddings.
func otherWidth(cfg *catalog.Config, tensors []Tensor) string {
	want := int64(cfg.Number("word_embed_proj_dim", "embedding_size", "hidden_size", "d_model",
		"n_embd"))
	for _, x := range tensors {
		isTable := slices.Contains(tableNames, catalog.Leaf(catalog.Parent(x.Name)))
		if want > 0 && isTable && len(x.Shape) == 2 && x.Shape[1] != want {
			return fmt.Sprintf("%s is %d wide, but config.json has %d", x.Name, x.Shape[1], want)
		}
	}
	return ""
}

// uncountedLayer says that layers are units, but the config doesn't count them.
func uncountedLayer(cfg *catalog.Config, units []Unit) string {
	if cfg.Number("num_hidden_layers") >= 0 {
		return ""
	}
	for _, u := range units {
		if catalog.InMainStack(u.Path) {
			return "config.json doesn't say, as a number, how many layers there are"
		}
	}
	return ""
}

// otherRows says which matrix has a number of rows that doesn't fit the config's heads, inner
// widths, or vocabulary. In a config with parts, such as a vision tower, these are the text model's,
// so they are compared with its layers alone.
func otherRows(cfg *catalog.Config, tensors []Tensor) string {
	heads, keys := cfg.NumbersOf("attention_heads"), cfg.NumbersOf("key_value_heads", "kv_heads")
	if len(keys) == 0 {
		keys = heads
	}
	dims := cfg.NumbersOf("head_dim", "head_size", "kv_channels")
	if n := cfg.Number("num_attention_heads"); n > 0 && len(dims) == 0 {
		dims = append(dims, cfg.Number("hidden_size")/n)
	}
	queried, keyed := products(heads, dims), products(keys, dims)
	inner := cfg.NumbersOf("intermediate", "ffn", "inner", "mlp")
	hasParts := cfg.HasParts()
	for _, x := range tensors {
		if len(x.Shape) != 2 {
			continue
		}
		module, rows := catalog.Parent(x.Name), int(x.Shape[0])
		isOne, of := true, ""
		switch leaf := catalog.Leaf(module); {
		case slices.Contains(tableNames, leaf), leaf == "lm_head":
			of = "vocab_size"
			isOne = rows == cfg.Number(of) || cfg.Number(of) < 0
		case hasParts && !catalog.InMainStack(module):
		case strings.HasSuffix(module, ".mlp.gate_proj"), strings.HasSuffix(module, ".mlp.up_proj"):
			of = "intermediate_size"
			isOne = slices.Contains(inner, rows) || cfg.Number(of) < 0
		case len(heads) == 0:
		case leaf == "k_proj", leaf == "v_proj":
			of, isOne = "heads", keyed[rows]
		case leaf == "q_proj": // in some classes with a gate next to it
			of, isOne = "heads", queried[rows] || queried[rows/2]
		}
		if !isOne {
			return fmt.Sprintf("%s has %d rows, which isn't what config.json says of its %s", x.Name, rows, of)
		}
	}
	return ""
}

// products returns the products of each number of heads with each of their widths.
func products(heads, dims []int) map[int]bool {
	all := map[int]bool{}
	for _, h := range heads {
		for _, d := range dims {
			all[h*d] = true
		}
	}
	return all
}

// lackedName says which tensor the source lacks although a switch of the config makes the class
// build it next to one that the source has.
func lackedName(cfg *catalog.Config, t *catalog.Tried, tensors []Tensor) string {
	has := map[string]bool{}
	for _, x := range tensors {
		has[catalog.Numberless(x.Name)] = true
	}
	for _, word := range t.Names() {
		name, member, _ := strings.Cut(word, "?")
		on := catalog.LookUp[bool](cfg, member)
		if on != nil && *on && !has[name] && has[catalog.Parent(name)+".weight"] {
			return fmt.Sprintf("config.json has %s, but the source has no %s", member, name)
		}
	}
	return ""
}
