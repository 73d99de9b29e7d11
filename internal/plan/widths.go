package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// unlikeConfig says which tensor the class doesn't build with this shape or this config, or returns "".
// It goes by what most classes have in common, and passes what it doesn't know.
func (c *choice) unlikeConfig(t *catalog.Tried) string {
	all := c.plainTensors()
	for _, u := range c.Units {
		all = append(all, u.Attrs...)
		isLayer := slices.ContainsFunc(catalog.Splits(u.Path+".x"),
			func(s catalog.Split) bool { return slices.Contains(catalog.MainStacks, s.Stack) })
		if isLayer && c.cfg.Number("num_hidden_layers") < 0 {
			return "config.json doesn't say, as a number, how many layers there are"
		}
	}
	heads, keys := c.cfg.NumbersOf("attention_heads"), c.cfg.NumbersOf("key_value_heads", "kv_heads")
	if len(keys) == 0 {
		keys = heads
	}
	dims := c.cfg.NumbersOf("head_dim", "head_size", "kv_channels")
	if n := c.cfg.Number("num_attention_heads"); n > 0 && len(dims) == 0 {
		dims = append(dims, c.cfg.Number("hidden_size")/n)
	}
	queried, keyed := products(heads, dims), products(keys, dims)
	inner := c.cfg.NumbersOf("intermediate", "ffn", "inner", "mlp")
	for _, x := range all {
		if len(x.Shape) != 2 {
			continue
		}
		module, rows := catalog.Parent(x.Name), int(x.Shape[0])
		isOne, of := true, ""
		switch leaf := catalog.Leaf(module); {
		case slices.Contains(tableNames, leaf):
			of = "vocab_size"
			isOne = rows == c.cfg.Number(of) || c.cfg.Number(of) < 0
		case strings.HasSuffix(module, ".mlp.gate_proj"), strings.HasSuffix(module, ".mlp.up_proj"):
			of = "intermediate_size"
			isOne = slices.Contains(inner, rows) || c.cfg.Number(of) < 0
		case len(heads) == 0:
		case leaf == "k_proj", leaf == "v_proj":
			of, isOne = "heads", keyed[rows]
		case leaf == "q_proj": // in some classes with a gate beside it
			of, isOne = "heads", queried[rows] || queried[rows/2]
		}
		if !isOne {
			return fmt.Sprintf("%s has %d rows, which isn't what config.json says of its %s", x.Name, rows, of)
		}
	}
	return c.lackedName(t, all)
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

// lackedName says which tensor the source lacks although a switch of the config makes the class build
// it, beside one that the source has. It returns "" if there is none.
func (c *choice) lackedName(t *catalog.Tried, all []Tensor) string {
	has := map[string]bool{}
	for _, x := range all {
		has[catalog.Numberless(x.Name)] = true
	}
	for _, word := range t.Names() {
		name, member, _ := strings.Cut(word, "?")
		on := catalog.LookUp[bool](c.cfg, member)
		if on != nil && *on && !has[name] && has[catalog.Parent(name)+".weight"] {
			return fmt.Sprintf("config.json has %s, but the source has no %s", member, name)
		}
	}
	return ""
}
