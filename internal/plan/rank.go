package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
)

// partRanks orders the parts of a block, leafRanks the projections of a part, as most classes define them. Any fixed order is
// lossless, since the loader splits by the dict; with this order, derived dicts equal published ones.
var (
	partRanks = []string{"mod", "ada", "norm", "self_attn", "attn", "attention", "cross", "encoder_attn", "mixer", "mamba",
		"linear_attn", "conv", "block_sparse_moe", "mlp", "ff", "feed_forward"}
	leafRanks = []string{"q_a_proj", "q_b_proj", "q_proj", "to_q", "wq", "query", "qkv", "k_proj", "kv_a", "kv_b", "to_k", "wk",
		"key", "v_proj", "to_v", "wv", "value", "add_k", "add_v", "add_q", "o_proj", "to_out", "wo", "out_proj", "dense", "proj",
		"to_add_out", "gate_up", "gate", "up", "down", "w1", "w2", "w3", "fc1", "fc2", "linear1", "linear2"}
)

// compareAttrs orders attributes of a block: component by component, by rank, then naturally.
func compareAttrs(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < min(len(x), len(y)); i++ {
		ranks := partRanks
		if isLast(x, i) && isLast(y, i) {
			ranks = leafRanks
		}
		if c := cmp.Or(cmp.Compare(rankOf(ranks, x[i]), rankOf(ranks, y[i])), human.CompareNames(x[i], y[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// isLast says whether component i names the projection: nothing but numbers follows, as in to_out.0.
func isLast(parts []string, i int) bool {
	return strings.Trim(strings.Join(parts[i+1:], ""), "0123456789") == ""
}

// rankOf returns the place of the rank that the component equals, else of the longest rank that it starts with, else the end.
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

// sortedPaths returns the keys of a map in natural order.
func sortedPaths[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), human.CompareNames)
}
