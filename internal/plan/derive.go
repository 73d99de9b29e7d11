package plan

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
)

// deriveDict makes the dict from headers and config alone, for classes that the catalog does not
// know. docs/models.md lists what headers cannot show.
func (d *draft) deriveDict(ctx context.Context) (PatternDict, error) {
	blocks := d.cfg.findStacks(d.candidates())
	if len(blocks) == 0 {
		return nil, d.refuseUnknown()
	}
	dict := d.outerUnits()
	for _, stack := range sortedPaths(blocks) {
		var groups blockGroups
		for _, i := range slices.Sorted(maps.Keys(blocks[stack])) {
			slices.SortFunc(blocks[stack][i], compareAttrs)
			groups.add("", blocks[stack][i], i, stack+"."+strconv.Itoa(i))
		}
		patterns, err := d.blockPatterns(ctx,
			Pattern{Regex: strings.ReplaceAll(stack, ".", `\.`) + `\.\d+`}, groups)
		if err != nil {
			return nil, err
		}
		dict = append(dict, patterns...)
	}
	return dict, nil
}

// guessLoader says how a model of a class that the catalog does not know is loaded.
func (c *config) guessLoader() Loader {
	class := c.class()
	if strings.HasSuffix(class, "ForCausalLM") {
		return Loader{Via: "AutoModelForCausalLM"}
	}
	return Loader{Via: viaClass, Class: class}
}

// refuseUnknown explains why nothing could be derived.
func (d *draft) refuseUnknown() error {
	for _, t := range d.inv.tensors {
		if len(t.Shape) == 2 && !d.opt.convertible(t.DType) && strings.HasSuffix(t.Name,
			".weight") {
			return d.inv.refuseDType(t)
		}
	}
	hint := "name the modules to compress with --pattern-dict, or take those of a relative with --like; the catalog's families: " +
		strings.Join(families(), ", ")
	return refuse(hint,
		"the catalog does not know this model, and its names show no stack of blocks to compress")
}

// candidates lists the modules whose weights look like those of nn.Linear.
func (d *draft) candidates() []string {
	experts := d.cfg.experts()
	var out []string
	for _, t := range d.inv.tensors {
		module, ok := strings.CutSuffix(t.Name, ".weight")
		if !ok || !d.opt.compressible(t) {
			continue
		}
		rows, columns := t.Shape[0], t.Shape[1]
		isRouter := rows == int64(experts)
		isTable := slices.ContainsFunc(strings.Split(module, "."), tableComponent.MatchString) ||
			normLeaf.MatchString(leaf(module))
		if rows > 1 && columns > 0 && !isRouter && !isTable && !d.facts.mayTie(t.Name) &&
			!d.facts.readsOutside(blockOf(module), module) {
			out = append(out, module)
		}
	}
	return out
}

// blockOf returns the outermost block that a module lies in, else the module.
func blockOf(module string) string {
	if splits := splitsOf(module); len(splits) > 0 {
		return splits[0].stack + "." + strconv.Itoa(splits[0].index)
	}
	return module
}

// normLeaf matches modules that are no nn.Linear: norms with a weight for each head, and embeddings
// of positions.
var normLeaf = regexp.MustCompile(`norm|_emb$`)

// tableComponent matches path components of embeddings, other tables, routers, layers for
// multi-token prediction, and modules that several layers share.
var tableComponent = regexp.MustCompile(
	`^(embed.*|.*embedding|.*embeddings|wte|wpe|pos_.*|token_type.*|relative_attention_bias|patch_embed.*|time_embed.*|` +
		`.*_table|codebook|mtp|router|conv.*|shared_transf.*)$`)

// splitPath is one way to read the path of a weight: as an attribute of a numbered block of a
// stack.
type splitPath struct {
	stack string // path before the number
	index int    // the number of the block
	attr  string // path inside the block
}

// findStacks sorts modules into stacks of blocks: stack path → block index → attributes. The stack
// of a module is the outermost number in its path that counts at least two blocks, half or more of
// which share an attribute.
func (c *config) findStacks(modules []string) map[string]map[int][]string {
	all := map[string]*numbering{}
	for _, m := range modules {
		for _, s := range splitsOf(m) {
			if all[s.stack] == nil {
				all[s.stack] = &numbering{indices: map[int]bool{}, share: map[string]int{}}
			}
			all[s.stack].indices[s.index] = true
			all[s.stack].share[s.attr]++
		}
	}
	blocks := map[string]map[int][]string{}
	for _, m := range modules {
		splits := splitsOf(m)
		i := slices.IndexFunc(splits, func(s splitPath) bool { return all[s.stack].isStack() })
		if i < 0 || c.isExtraLayer(m) {
			continue
		}
		s := splits[i]
		if blocks[s.stack] == nil {
			blocks[s.stack] = map[int][]string{}
		}
		blocks[s.stack][s.index] = append(blocks[s.stack][s.index], s.attr)
	}
	return blocks
}

// numbering counts the numbered children of a module.
type numbering struct {
	indices map[int]bool   // the numbers
	share   map[string]int // attribute → children that have it
}

// isStack says whether the children are blocks of a stack.
func (n *numbering) isStack() bool {
	most := 0
	for _, blocks := range n.share {
		most = max(most, blocks)
	}
	return len(n.indices) >= 2 && 2*most >= len(n.indices)
}

// splitsOf returns every way to read a path as stack, number and attribute, outermost first.
func splitsOf(module string) []splitPath {
	parts := strings.Split(module, ".")
	var out []splitPath
	for i := 1; i < len(parts)-1; i++ {
		if n, ok := number(parts[i]); ok {
			out = append(out,
				splitPath{strings.Join(parts[:i], "."), n, strings.Join(parts[i+1:], ".")})
		}
	}
	return out
}

// lastSplit reads the path of a block by its last number; without a number there is no stack, and
// the number is -1.
func lastSplit(module string) splitPath {
	splits := splitsOf(module + ".x")
	if len(splits) == 0 {
		return splitPath{index: -1}
	}
	return splits[len(splits)-1]
}

// outerUnits returns the units outside the blocks: head and token embedding of an untied model.
func (d *draft) outerUnits() PatternDict {
	pair, ok := d.inv.guessTie()
	if !ok || d.plan.TiedEmbeddings {
		return nil
	}
	var dict PatternDict
	for _, name := range []string{pair.drop, pair.keep} {
		t, ok := d.inv.get(name)
		if !ok || !d.opt.convertible(t.DType) {
			return nil
		}
		if d.facts.readsOutside(parent(name), parent(name)) || d.facts.mayTie(name) {
			continue
		}
		dict = append(dict,
			Pattern{Regex: strings.ReplaceAll(parent(name), ".", `\.`), Attrs: []string{}})
	}
	return dict
}

// partRanks orders the parts of a block, leafRanks the projections of a part, as most classes
// define them. Any fixed order is lossless, since the loader splits by the dict; with this order,
// derived dicts equal published ones.
var (
	partRanks = []string{"mod", "ada", "norm", "self_attn", "attn", "attention", "cross",
		"encoder_attn", "mixer", "mamba",
		"linear_attn", "conv", "block_sparse_moe", "mlp", "ff", "feed_forward"}
	leafRanks = []string{"q_a_proj", "q_b_proj", "q_proj", "to_q", "wq", "query", "qkv", "k_proj",
		"kv_a", "kv_b", "to_k", "wk",
		"key", "v_proj", "to_v", "wv", "value", "add_k", "add_v", "add_q", "o_proj", "to_out", "wo",
		"out_proj", "dense", "proj",
		"to_add_out", "gate_up", "gate", "up", "down", "w1", "w2", "w3", "fc1", "fc2", "linear1",
		"linear2"}
)

// compareAttrs orders attributes of a block: component by component, by rank, then naturally.
func compareAttrs(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < min(len(x), len(y)); i++ {
		ranks := partRanks
		if isLast(x, i) && isLast(y, i) {
			ranks = leafRanks
		}
		if c := cmp.Or(cmp.Compare(rankOf(ranks, x[i]), rankOf(ranks, y[i])),
			human.CompareNames(x[i], y[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// isLast says whether component i names the projection: nothing but numbers follows, as in
// to_out.0.
func isLast(parts []string, i int) bool {
	return strings.Trim(strings.Join(parts[i+1:], ""), "0123456789") == ""
}

// rankOf returns the place of the rank that the component equals, else of the longest rank that it
// starts with, else the end.
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
