package plan

import (
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
)

// Last path components of output heads and of token embeddings, for models that the catalog doesn't
// know.
var (
	headNames  = strings.Fields("lm_head embed_out output proj_out")
	tableNames = strings.Fields("embed_tokens tok_embeddings word_embeddings wte embed_in embeddings")
)

// resolveTies finds out whether head and embedding are one matrix (docs/format.md §15), and removes
// the copies that aren't stored from the inventory. If a given dict compresses the head of a tied
// model, the matrix is stored twice; such a model loads as well. resolveTies refuses a dict that
// compresses the embedding alone: whether that loads depends on the order of a directory listing.
func (c *choice) resolveTies(inv *inventory) (out *inventory, err error) {
	pairs, tied := c.ties(inv)
	c.TiedEmbeddings = tied
	compresses := func(tensor string) bool {
		return c.opt.PatternDict.Matches(catalog.Parent(tensor))
	}
	for _, pair := range pairs {
		drop, keep := pair[0], pair[1]
		copied, isTwice := inv.get(drop)
		original, isThere := inv.get(keep)
		tensors := slices.Clone(inv.tensors)
		switch {
		case isTwice && compresses(drop):
			continue
		case tied && compresses(keep):
			return nil, refuse(hint.TiedHead,
				"the pattern dict compresses %s but not %s, which is tied to it", keep, drop)
		case !isTwice:
			continue
		case !isThere:
			tensors[inv.byName[drop]].Name = keep
			c.differ("%s is stored as %s, the name that a model with tied embeddings loads",
				drop, keep)
		case copied.DType != original.DType || !slices.Equal(copied.Shape, original.Shape):
			return nil, refuse(hint.OtherTied, "the config ties %s to %s, but the "+
				"source stores them with different types or shapes", drop, keep)
		default:
			tensors = slices.Delete(tensors, inv.byName[drop], inv.byName[drop]+1)
			c.Aliases = append(c.Aliases, Alias{Tensor: copied, Of: original})
			c.differ("%s is not stored: the source's copy must equal %s, which the loader "+
				"takes for it", drop, keep)
		}
		if inv, err = inv.with(tensors); err != nil {
			return nil, err
		}
	}
	return inv, nil
}

// placeAliases completes the aliases once the units are formed. If a unit takes F32 as BF16, the
// copies of its weight are narrowed, too, and compared after that.
func (f *former) placeAliases() {
	if len(f.Aliases) == 0 {
		return
	}
	inUnits := map[string]Tensor{}
	for _, u := range f.Units {
		for _, t := range u.Attrs {
			inUnits[t.Name] = t
		}
	}
	for i := range f.Aliases {
		a := &f.Aliases[i]
		if t, ok := inUnits[a.Of.Name]; ok {
			a.Of, a.Tensor.ExactF32 = t, t.ExactF32
		}
	}
}

// ties returns the pairs that are shared, and whether head and embedding are among them. Of each
// pair, the first tensor isn't stored, and the second holds its values.
func (c *choice) ties(inv *inventory) (pairs [][2]string, tied bool) {
	head, ok := c.guessTie(inv)
	if c.entry != nil && c.entry.Tied != nil {
		t := c.entry.Tied
		pairs = slices.Clone(t.Always)
		head, ok = [2]string{t.Head + ".weight", t.Embedding + ".weight"}, t.Head != ""
	}
	if ok && c.isTied(inv, head) {
		return append(pairs, head), true
	}
	return pairs, false
}

// guessTie finds a head and a token embedding by their usual names. The shortest path of each wins.
func (c *choice) guessTie(inv *inventory) (pair [2]string, ok bool) {
	table := c.shortestWeight(inv, tableNames)
	head := c.shortestWeight(inv, headNames)
	if head == "" {
		head = "lm_head.weight"
	}
	return [2]string{head, table}, table != ""
}

// shortestWeight returns the 2-D weight with the shortest path whose module has one of the names in
// the class, or "". The longest usual name is model.decoder.embed_tokens.weight.
func (c *choice) shortestWeight(inv *inventory, names []string) (best string) {
	for _, t := range inv.tensors {
		module, ok := strings.CutSuffix(c.inClass(t.Name), ".weight")
		if !ok || len(t.Shape) != 2 || !slices.Contains(names, catalog.Leaf(module)) {
			continue
		}
		if n := strings.Count(t.Name, "."); n <= 3 && (best == "" || n < strings.Count(best, ".")) {
			best = t.Name
		}
	}
	return best
}

// inClass returns what a tensor's name begins with in the class, if transformers renames the output's
// tensors when it loads them: a head may be stored as head.weight.
func (c *choice) inClass(tensor string) string {
	if !c.mapped {
		return tensor
	}
	return catalog.Rename(c.facts.Renames, tensor)
}

// isTied asks the config, then the catalog, then the tensors. A stored head counts as untied, which
// is always lossless.
func (c *choice) isTied(inv *inventory, pair [2]string) bool {
	_, isStored := inv.get(pair[0])
	if tied := c.entry.TiedBy(c.cfg); tied != nil {
		// transformers 5 looks at the top level
		return *tied || !isStored && catalog.Decode[bool](c.cfg.Raw["tie_word_embeddings"])
	}
	_, isThere := inv.get(pair[1])
	return !isStored && isThere && c.cfg.HasHead()
}
