package plan

import (
	"cmp"
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// choice says where a plan's dict comes from, and whose names and ties apply.
type choice struct {
	*reading
	entry *catalog.Entry // nil for a dict that was given or derived
	id    string         // of the entry whose dict it is
	// class that the source states although its names are not that class's; "" if all fits
	foreign    string
	provenance string
	unlike     bool
	layout     catalog.Layout
	loader     catalog.Loader
	dict       catalog.PatternDict // nil if it is to be derived
}

// choose takes the dict from the caller, from a named entry, from the catalog, or from the rule for
// unknown classes. Names and ties of a named entry apply to a dict of the caller, too: the
// config.json of a finished model states its dict alone.
func (r *reading) choose(ctx context.Context, inv *inventory) (*choice, error) {
	c := &choice{reading: r, layout: r.survey.Layout, dict: r.opt.PatternDict}
	known := r.bestEntry(inv)
	if known != nil && !inv.hasBlocks(ctx, known) {
		c.foreign, known = known.StatedClass(r.cfg), nil
	}
	switch {
	case r.opt.Like != "":
		if known = catalog.Find(r.opt.Like); known == nil {
			return nil, refuse(catalog.LikeHint(r.opt.Like), "the catalog has no entry %s",
				r.opt.Like)
		}
	case c.dict != nil:
		known = nil
	}
	var err error
	if c.entry, err = r.usable(known); err != nil {
		return nil, err
	}
	switch e := c.entry; {
	case c.dict != nil:
		c.provenance = "given"
	case e == nil:
		c.provenance, c.loader = "derived", r.cfg.GuessLoader()
	default:
		c.layout, c.id, c.provenance, c.unlike = e.Layout, e.ID, e.Provenance, r.score(e, inv) == 0
		c.dict, c.loader = e.PatternDict, e.Loader
		if listed := e.Match.Architectures; slices.Contains(listed, e.Loader.Class) &&
			slices.Contains(listed, r.cfg.Class()) {
			c.loader.Class = r.cfg.Class()
		}
	}
	c.layout = cmp.Or(r.opt.Layout, c.layout)
	return c, nil
}

// bestEntry returns the entry with the highest score, the first of equals; nil if none fits. It
// leaves like-only entries out.
func (r *reading) bestEntry(inv *inventory) (best *catalog.Entry) {
	most := 0
	for _, e := range catalog.All() {
		if n := r.score(e, inv); n > most && !e.LikeOnly {
			best, most = e, n
		}
	}
	return best
}

// score says how well an entry fits the source; 0 if it does not.
func (r *reading) score(e *catalog.Entry, inv *inventory) int {
	if e.Layout.Family() != r.survey.Layout {
		return 0
	}
	return e.Score(r.cfg, inv.holds)
}

// usable refuses an entry that cannot be used, and forgets one that knows no dict.
func (r *reading) usable(e *catalog.Entry) (*catalog.Entry, error) {
	switch {
	case e == nil || e.Derive:
		return nil, nil
	case e.Refuse != nil:
		return nil, refuse(e.Refuse.Hint, "%s", e.Refuse.Why)
	case e.Layout.Family() != r.survey.Layout:
		return nil, refuse("choose an entry for this layout, or the layout of that entry",
			"%s is for the layout %s, the source is %s", e.ID, e.Layout, r.survey.Layout)
	}
	return e, nil
}

// renamePaths gives all tensors the module paths of the class that loads the output: that of the
// entry, else the stated one. It notes a class that has no modules for some of them.
func (c *choice) renamePaths(ctx context.Context, inv *inventory,
	notes *Notes) (*inventory, error) {
	if slices.ContainsFunc(inv.tensors, func(t Tensor) bool { return c.facts.Changes(t.Name) }) {
		if c.entry == nil {
			c.loader.Transformers = "<5"
		}
		if c.facts.IsNew {
			c.foreign = c.cfg.Class()
		}
	}
	rules := c.facts.Renames
	if c.entry != nil {
		rules = c.entry.Renames()
	}
	named, err := inv.named(ctx, rules, c.dict)
	if err != nil {
		return nil, err
	}
	n := 0
	for i, t := range named.tensors {
		if t.Name != inv.tensors[i].Name {
			n++
		}
	}
	if n > 0 {
		named.renamed = true
		notes.differ("%s stored under the module paths of current transformers instead of the "+
			"source's names", count(n, "tensor"))
	}
	return named, nil
}
