package plan

import (
	"slices"
	"strings"
)

// tie is a pair of tensors that the model may share; if it does, keep alone is stored.
type tie struct{ drop, keep string }

// Last path components of output heads and of token embeddings, for models that the catalog does
// not know.
var (
	headNames  = []string{"lm_head", "embed_out", "output", "proj_out"}
	tableNames = []string{"embed_tokens", "tok_embeddings", "word_embeddings", "wte", "embed_in",
		"embeddings"}
)

// resolveTies finds out whether head and embedding are one matrix (docs/format.md §15), and takes
// the copy that is not stored out of the inventory.
func (d *draft) resolveTies() error {
	always, whenTied := d.tiePairs()
	if d.isTied(whenTied) {
		d.plan.TiedEmbeddings = true
		always = append(always, whenTied...)
	}
	drop := map[string]bool{}
	for _, t := range always {
		if err := d.applyTie(t, drop); err != nil {
			return err
		}
	}
	d.inv.tensors = slices.DeleteFunc(d.inv.tensors, func(t Tensor) bool { return drop[t.Name] })
	return d.inv.index()
}

// tiePairs returns the pairs that are always shared, and the pairs that are shared when the
// embeddings are tied.
func (d *draft) tiePairs() (always, whenTied []tie) {
	if d.entry == nil || d.entry.Tied == nil {
		if t, ok := d.inv.guessTie(); ok {
			whenTied = []tie{t}
		}
		return nil, whenTied
	}
	for _, pair := range d.entry.Tied.Always {
		always = append(always, tie{pair[0], pair[1]})
	}
	if t := d.entry.Tied; t.Head != "" {
		whenTied = []tie{{t.Head + ".weight", t.Embedding + ".weight"}}
	}
	return always, whenTied
}

// guessTie finds a head and a token embedding by their usual names; the shortest path of each wins.
func (inv *inventory) guessTie() (tie, bool) {
	table := inv.shortestWeight(tableNames)
	if table == "" {
		return tie{}, false
	}
	head := inv.shortestWeight(headNames)
	if head == "" {
		head = "lm_head.weight"
	}
	return tie{drop: head, keep: table}, true
}

// shortestWeight returns the 2-D weight with the shortest path whose module has one of the names;
// "" if there is none. The longest usual name is model.decoder.embed_tokens.weight.
func (inv *inventory) shortestWeight(names []string) string {
	best := ""
	for _, t := range inv.tensors {
		module, ok := strings.CutSuffix(t.Name, ".weight")
		if !ok || len(t.Shape) != 2 || !slices.Contains(names, leaf(module)) {
			continue
		}
		if n := strings.Count(t.Name, "."); n <= 3 && (best == "" || n < strings.Count(best, ".")) {
			best = t.Name
		}
	}
	return best
}

// isTied asks the config, else the catalog, else the tensors. A stored head counts as untied, which
// is always lossless.
func (d *draft) isTied(pairs []tie) bool {
	if len(pairs) == 0 {
		return false
	}
	if tied := d.entry.tiedBy(d.cfg); tied != nil {
		// there transformers 5 looks
		return *tied || !d.inv.holds(pairs[0].drop) &&
			decode[bool](d.cfg.raw["tie_word_embeddings"])
	}
	return !d.inv.holds(pairs[0].drop) && d.inv.holds(pairs[0].keep) &&
		slices.ContainsFunc(d.cfg.Architectures, headClass.MatchString)
}

// applyTie marks the copy for removal and asks for its comparison. A copy without its original
// takes the original's name. A given dict may compress the head of a tied model: both ways load,
// and the matrix is then stored twice. Of one that compresses the embedding alone, the order of a
// directory listing decides whether it loads (docs/format.md §15).
func (d *draft) applyTie(t tie, drop map[string]bool) error {
	copied, okCopy := d.inv.get(t.drop)
	original, okOriginal := d.inv.get(t.keep)
	compresses := d.opt.PatternDict.matches
	isTwice := okCopy && compresses(parent(t.drop))
	switch {
	case d.plan.TiedEmbeddings && compresses(parent(t.keep)) && !isTwice:
		return refuse("remove the embedding from the pattern dict",
			"the pattern dict compresses %s but not %s, which is tied to it", t.keep, t.drop)
	case !okCopy:
		return nil
	case isTwice:
		d.plan.warn(
			"the pattern dict compresses %s although it is tied to %s: the matrix is stored twice",
			t.drop, t.keep)
		return nil
	case !okOriginal:
		d.inv.tensors[d.inv.byName[t.drop]].Name = t.keep
		d.plan.differ("%s is stored as %s, the name that a model with tied embeddings loads",
			t.drop, t.keep)
		return d.inv.index()
	case copied.DType != original.DType || !slices.Equal(copied.Shape, original.Shape):
		return refuse(
			"set tie_word_embeddings to false in a copy of the source if the two are really different",
			"the config ties %s to %s, but the source stores them with different types or shapes",
			t.drop, t.keep)
	}
	drop[t.drop] = true
	d.plan.Aliases = append(d.plan.Aliases, Alias{Tensor: copied, Of: original})
	d.plan.differ(
		"%s is not stored: the source's copy must equal %s, which the loader takes for it", t.drop,
		t.keep)
	return nil
}
