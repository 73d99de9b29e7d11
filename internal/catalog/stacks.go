package catalog

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
)

// IsTable reports whether a module's path shows that it isn't an nn.Linear, though its weight has
// the shape of one.
func IsTable(module string) bool {
	return slices.ContainsFunc(strings.Split(module, "."), tableComponent.MatchString) ||
		normLeaf.MatchString(Leaf(module))
}

// normLeaf matches norms with a weight for each head, and embeddings of positions.
var normLeaf = regexp.MustCompile(`norm|_emb$`)

// tableComponent matches path components of embeddings, other tables, routers, layers for
// multi-token prediction, and modules that several layers share.
var tableComponent = regexp.MustCompile(
	`^(embed.*|.*embedding|.*embeddings|wte|wpe|pos_.*|token_type.*|relative_attention_bias|patch_embed.*|time_embed.*|` +
		`.*_table|codebook|mtp|router|conv.*|shared_transf.*)$`)

// Stacks sorts modules into stacks of blocks: stack path → block index → attributes, in the order
// in which most classes define them. A module's stack is at the outermost number in its path that
// counts at least two blocks, if at least half of these share an attribute. Layers after the last
// that the config counts are in no stack.
func (c *Config) Stacks(modules []string) stacks {
	all, found := stacks{}, stacks{}
	for _, m := range modules {
		for _, s := range Splits(m) {
			all.add(s)
		}
	}
	maps.DeleteFunc(all, func(_ string, blocks map[int][]string) bool { return !isStack(blocks) })
	for _, m := range modules {
		splits := Splits(m)
		i := slices.IndexFunc(splits, func(s Split) bool { return all[s.Stack] != nil })
		if i >= 0 && !c.IsExtraLayer(m) {
			found.add(splits[i])
		}
	}
	for _, blocks := range found {
		for _, attrs := range blocks {
			slices.SortFunc(attrs, CompareAttrs)
		}
	}
	return found
}

// stacks has for each path before a number the attributes of each number.
type stacks map[string]map[int][]string

func (all stacks) add(s Split) {
	if all[s.Stack] == nil {
		all[s.Stack] = map[int][]string{}
	}
	all[s.Stack][s.Index] = append(all[s.Stack][s.Index], s.Attr)
}

// isStack reports whether numbered children are blocks of a stack.
func isStack(blocks map[int][]string) bool {
	share, most := map[string]int{}, 0 // attribute → how many children have it
	for _, attrs := range blocks {
		for _, a := range attrs {
			share[a]++
			most = max(most, share[a])
		}
	}
	return len(blocks) >= 2 && 2*most >= len(blocks)
}

// partRanks orders the parts of a block, leafRanks the projections of a part, as most classes
// define them. Any fixed order is lossless, since the loader splits by the dict; with this order,
// derived dicts equal published ones.
var (
	partRanks = strings.Fields("mod ada norm self_attn attn attention cross encoder_attn mixer mamba " +
		"linear_attn conv block_sparse_moe mlp ff feed_forward")
	leafRanks = strings.Fields("q_a_proj q_b_proj q_proj to_q wq query qkv k_proj kv_a kv_b to_k wk " +
		"key v_proj to_v wv value add_k add_v add_q o_proj to_out wo out_proj dense proj " +
		"to_add_out gate_up gate up down w1 w2 w3 fc1 fc2 linear1 linear2")
	// of an expert: what makes the fused parameter gate_up_proj comes first
	expertRanks = append(strings.Fields("gate_up gate up down w1 w3 w2 fc1 fc3 fc2 input_linear "+
		"output_linear"), leafRanks...)
)

// CompareAttrs orders a block's attributes component by component, by rank and then naturally.
func CompareAttrs(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < min(len(x), len(y)); i++ {
		ranks := partRanks
		if isLast(x, i) && isLast(y, i) {
			ranks = leafRanks
			if strings.Contains(strings.Join(x[:i], "."), "expert") {
				ranks = expertRanks
			}
		}
		if c := cmp.Or(cmp.Compare(rankOf(ranks, x[i]), rankOf(ranks, y[i])),
			human.CompareNames(x[i], y[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// isLast reports whether component i names the projection: only numbers follow it, as in to_out.0.
func isLast(parts []string, i int) bool {
	return strings.Trim(strings.Join(parts[i+1:], ""), "0123456789") == ""
}

// rankOf returns the rank that a component equals, or else the longest rank that it starts with, or
// else the end.
func rankOf(ranks []string, component string) int {
	if i := slices.Index(ranks, component); i >= 0 {
		return i
	}
	best := len(ranks)
	for i, r := range ranks {
		if strings.HasPrefix(component, r) && (best == len(ranks) || len(r) > len(ranks[best])) {
			best = i
		}
	}
	return best
}
