package plan

import (
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// A tie is a pair of tensors that the model may share. If it does, only keep is stored.
type tie struct{ drop, keep string }

// Last path components of output heads and of token embeddings, for models that the catalog doesn't
// know.
var (
	headNames  = strings.Fields("lm_head embed_out output proj_out")
	tableNames = strings.Fields("embed_tokens tok_embeddings word_embeddings wte embed_in embeddings")
)

// resolveTies finds out whether head and embedding are one matrix (docs/format.md §15), and removes
// the copies that aren't stored from the inventory.
func (c *choice) resolveTies(inv *inventory) (*inventory, error) {
	pairs, tied := c.ties(inv)
	c.TiedEmbeddings = tied
	drop := map[string]bool{}
	for _, t := range pairs {
		copied, okCopy := inv.get(t.drop)
		original, okOriginal := inv.get(t.keep)
		isTwice, err := c.isStoredTwice(t, okCopy, tied)
		switch {
		case err != nil:
			return nil, err
		case !okCopy:
		case isTwice:
			c.warn("the pattern dict compresses %s although it is tied to %s: the matrix is "+
				"stored twice", t.drop, t.keep)
		case !okOriginal:
			tensors := slices.Clone(inv.tensors)
			tensors[inv.byName[t.drop]].Name = t.keep
			if inv, err = inv.with(tensors); err != nil {
				return nil, err
			}
			c.differ("%s is stored as %s, the name that a model with tied embeddings loads",
				t.drop, t.keep)
		case copied.DType != original.DType || !slices.Equal(copied.Shape, original.Shape):
			return nil, refuse("set tie_word_embeddings to false in a copy of the "+
				"source if the two are really different", "the config ties %s to %s, but the "+
				"source stores them with different types or shapes", t.drop, t.keep)
		default:
			drop[t.drop] = true
			c.Aliases = append(c.Aliases, Alias{Tensor: copied, Of: original})
			c.differ("%s is not stored: the source's copy must equal %s, which the loader "+
				"takes for it", t.drop, t.keep)
		}
	}
	if len(drop) == 0 {
		return inv, nil
	}
	return inv.with(slices.DeleteFunc(slices.Clone(inv.tensors),
		func(t Tensor) bool { return drop[t.Name] }))
}

// isStoredTwice reports whether a given dict compresses the head of a tied model. Such a model
// loads either way. isStoredTwice refuses a dict that compresses the embedding alone: whether that
// loads depends on the order of a directory listing (docs/format.md §15).
func (c *choice) isStoredTwice(t tie, isThere, tied bool) (bool, error) {
	compresses := c.opt.PatternDict.Matches
	isTwice := isThere && compresses(catalog.Parent(t.drop))
	if tied && !isTwice && compresses(catalog.Parent(t.keep)) {
		return false, refuse("remove the embedding from the pattern dict",
			"the pattern dict compresses %s but not %s, which is tied to it", t.keep, t.drop)
	}
	return isTwice, nil
}

// ties returns the pairs that are shared, and whether head and embedding are among them.
func (c *choice) ties(inv *inventory) (pairs []tie, tied bool) {
	head, ok := inv.guessTie()
	if c.entry != nil && c.entry.Tied != nil {
		t := c.entry.Tied
		for _, pair := range t.Always {
			pairs = append(pairs, tie{pair[0], pair[1]})
		}
		head, ok = tie{t.Head + ".weight", t.Embedding + ".weight"}, t.Head != ""
	}
	if ok && c.isTied(inv, head) {
		return append(pairs, head), true
	}
	return pairs, false
}

// guessTie finds a head and a token embedding by their usual names. The shortest path of each wins.
func (inv *inventory) guessTie() (tie, bool) {
	table := inv.shortestWeight(tableNames)
	head := inv.shortestWeight(headNames)
	if head == "" {
		head = "lm_head.weight"
	}
	return tie{drop: head, keep: table}, table != ""
}

// shortestWeight returns the 2-D weight with the shortest path whose module has one of the names,
// or "". The longest usual name is model.decoder.embed_tokens.weight.
func (inv *inventory) shortestWeight(names []string) (best string) {
	for _, t := range inv.tensors {
		module, ok := strings.CutSuffix(t.Name, ".weight")
		if !ok || len(t.Shape) != 2 || !slices.Contains(names, catalog.Leaf(module)) {
			continue
		}
		if n := strings.Count(t.Name, "."); n <= 3 && (best == "" || n < strings.Count(best, ".")) {
			best = t.Name
		}
	}
	return best
}

// isTied asks the config, then the catalog, then the tensors. A stored head counts as untied, which
// is always lossless.
func (c *choice) isTied(inv *inventory, head tie) bool {
	_, isStored := inv.get(head.drop)
	if tied := c.entry.TiedBy(c.cfg); tied != nil {
		// transformers 5 looks at the top level
		return *tied || !isStored && catalog.Decode[bool](c.cfg.Raw["tie_word_embeddings"])
	}
	_, isThere := inv.get(head.keep)
	return !isStored && isThere && c.cfg.HasHead()
}
