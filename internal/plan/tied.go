package plan

import (
	"context"
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

// A checkpoint is the source's tensors as the class that loads the output has them: under its names,
// and each shared matrix once.
type checkpoint struct {
	inv     *inventory
	tied    bool    // head and embedding are one matrix (docs/format.md §15)
	aliases []Alias // copies that inv doesn't have
}

// conform names the source's tensors as the class does, and leaves out the copies of shared matrices.
func conform(ctx context.Context, r *reading, m *recognition, inv *inventory,
	notes *Notes) (*checkpoint, error) {
	named, err := nameTensors(ctx, r, m, inv, notes)
	if err != nil {
		return nil, err
	}
	c := &checkpoint{inv: named}
	pairs := alwaysShared(m.entry)
	head, ok := headPair(m, named)
	if c.tied = ok && isTied(r, m.entry, named, head); c.tied {
		pairs = append(pairs, head)
	}
	for _, pair := range pairs {
		if err := c.share(pair[0], pair[1], r.opt, notes); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// share leaves out the tensor drop, because the class uses keep instead. A given dict that
// compresses drop stores the matrix twice; such a model loads as well. share refuses a dict that
// compresses the embedding of a tied model but not the head: whether that loads depends on the
// order of a directory listing.
func (c *checkpoint) share(drop, keep string, opt Options, notes *Notes) error {
	compresses := func(tensor string) bool { return opt.PatternDict.Matches(catalog.Parent(tensor)) }
	copied, isTwice := c.inv.get(drop)
	original, exists := c.inv.get(keep)
	tensors := slices.Clone(c.inv.tensors)
	switch {
	case isTwice && compresses(drop):
		if !opt.Finished {
			notes.warn("the pattern dict compresses %s although it is tied to %s, so the output stores "+
				"that matrix twice", drop, keep)
		}
		return nil
	case c.tied && compresses(keep):
		return refuse(hint.TiedHead,
			"the pattern dict compresses %s but not %s, which is tied to it", keep, drop)
	case !isTwice:
		return nil
	case !exists:
		tensors[c.inv.byName[drop]].Name = keep
		notes.differ("%s is stored as %s, the name that a model with tied embeddings loads",
			drop, keep)
	case copied.DType != original.DType || !slices.Equal(copied.Shape, original.Shape):
		return refuse(hint.OtherTied, "the config ties %s to %s, but the "+
			"source stores them with different types or shapes", drop, keep)
	default:
		tensors = slices.Delete(tensors, c.inv.byName[drop], c.inv.byName[drop]+1)
		c.aliases = append(c.aliases, Alias{Tensor: copied, Of: original})
		notes.differ("%s is not stored: the source's copy must equal %s, which the loader "+
			"takes for it", drop, keep)
	}
	var err error
	c.inv, err = c.inv.with(tensors)
	return err
}

// alwaysShared returns the pairs that a class shares whatever its config says: a tensor that isn't
// stored, and the one that holds its values.
func alwaysShared(e *catalog.Entry) [][2]string {
	if e == nil || e.Tied == nil {
		return nil
	}
	return slices.Clone(e.Tied.Always)
}

// headPair returns the weights of head and token embedding: the entry's, or else those with the usual
// names.
func headPair(m *recognition, inv *inventory) (pair [2]string, ok bool) {
	if e := m.entry; e != nil && e.Tied != nil {
		return [2]string{e.Tied.Head + ".weight", e.Tied.Embedding + ".weight"}, e.Tied.Head != ""
	}
	return guessPair(m.names, inv)
}

// guessPair finds a head and a token embedding by their usual names. The shortest path of each wins.
func guessPair(n naming, inv *inventory) (pair [2]string, ok bool) {
	table := shortestWeight(n, inv, tableNames)
	head := shortestWeight(n, inv, headNames)
	if head == "" {
		head = "lm_head.weight"
	}
	return [2]string{head, table}, table != ""
}

// shortestWeight returns the 2-D weight with the shortest path whose module has one of the names in
// the class, or "". The longest usual name is model.decoder.embed_tokens.weight.
func shortestWeight(n naming, inv *inventory, names []string) (best string) {
	for _, t := range inv.tensors {
		module, ok := strings.CutSuffix(n.inClass(t.Name), ".weight")
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
func (n naming) inClass(tensor string) string {
	if !n.mapped {
		return tensor
	}
	return catalog.Rename(n.renames, tensor)
}

// isTied asks the config, then the catalog, then the tensors. A stored head counts as untied, which
// is always lossless.
func isTied(r *reading, e *catalog.Entry, inv *inventory, pair [2]string) bool {
	_, isStored := inv.get(pair[0])
	if tied := e.TiedBy(r.cfg); tied != nil {
		// transformers 5 looks at the top level
		return *tied || !isStored && catalog.Decode[bool](r.cfg.Raw["tie_word_embeddings"])
	}
	_, exists := inv.get(pair[1])
	return !isStored && exists && r.cfg.HasHead()
}
