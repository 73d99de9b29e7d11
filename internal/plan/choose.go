package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
)

// A choice adds to a reading where the plan's dict comes from, and whose names and ties apply.
type choice struct {
	*reading
	*Plan
	entry *catalog.Entry // nil for a dict that was given or derived
	// the class that the source states, if its names aren't that class's; else ""
	foreign string
	// transformers makes the class's names, or its fused experts, of the source's tensors
	mapped  bool
	node    catalog.PatternDict // the ComfyUI node's dict for this class; nil if it has none
	parents map[string]bool     // modules with sub-modules, once the units are formed
	// modules of the entry's dict that this source has in another type, or doesn't have
	aside []string
}

// choose takes the dict from the caller, a named entry, the catalog, or the rule for unknown
// classes. If the caller gives a dict and names an entry, the entry's names and ties apply, because
// the config.json of a finished model states its dict alone. A dict that has to be derived stays nil.
func (r *reading) choose(ctx context.Context, inv *inventory, notes *Notes) (*choice, error) {
	c := &choice{reading: r, Plan: &Plan{source: r.source, readsFor: r.opt.For, Notes: *notes}}
	c.Dropped = inv.dropped
	c.Layout, c.PatternDict = r.survey.Layout, r.opt.PatternDict
	known := r.bestEntry(inv)
	if known != nil && !inv.hasBlocks(ctx, known) {
		known = nil
		// code may define another class of that name, and a base model has shorter paths
		if !r.cfg.Holds("auto_map") && r.facts.Bare == "" {
			c.foreign = r.cfg.Class()
		}
	}
	if known != nil && known.NodeLoads() {
		c.node, c.ByNode = known.PatternDict, true
	}
	switch {
	case r.opt.Like != "":
		if known = catalog.Find(r.opt.Like); known == nil {
			h := hint.LikeUnknown
			if near := catalog.Near(r.opt.Like); near != nil {
				h = hint.Like.With("entries", strings.Join(near, ", "))
			}
			return nil, refuse(h, "the catalog has no entry %s", r.opt.Like)
		}
	case c.PatternDict != nil:
		known = nil
	}
	if known != nil {
		if err := r.checkEntry(known); err != nil {
			return nil, err
		}
	}
	c.entry = known
	switch e := c.entry; {
	case c.PatternDict != nil:
		if c.Provenance = "given"; e != nil {
			c.Entry = e.ID
		}
	case e == nil:
		c.Provenance, c.Loader = "derived", r.cfg.GuessLoader()
	default:
		c.Layout, c.Entry, c.Provenance, c.Unlike = e.Layout, e.ID, e.Provenance, r.score(e, inv) == 0
		c.PatternDict, c.Loader = e.PatternDict, e.Loader
		if listed := e.Match.Architectures; slices.Contains(listed, e.Loader.Class) &&
			slices.Contains(listed, r.cfg.Class()) {
			c.Loader.Class = r.cfg.Class()
		}
	}
	c.Layout = cmp.Or(r.opt.Layout, c.Layout)
	return c, nil
}

// bestEntry returns the entry with the highest score, the first of equals, or nil if none fits. It
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

// rebase adds the prefix of the base model to all names, if the stated class has a prefix and no
// name does. It removes the prefix if the class is itself the base model. Transformers does the
// same (base_model_prefix). Names of heads stay, and so do names that fit an entry or a given dict
// better.
func rebase(ctx context.Context, r *reading, inv *inventory) *inventory {
	under, bare, dict := r.facts.Under, r.facts.Bare, r.opt.PatternDict
	if slices.ContainsFunc(inv.tensors,
		func(t Tensor) bool { return strings.HasPrefix(t.Name, under) }) {
		under = ""
	}
	best := r.bestEntry(inv)
	// transformers has rules of its own for these names, which a prefix would hide from it
	if r.facts.IsNew && inv.changes(&r.facts) || inv.isRenamed(r.facts.Renames, under) {
		return inv
	}
	if under+bare == "" || best != nil && inv.hasBlocks(ctx, best) {
		return inv
	}
	tensors := slices.Clone(inv.tensors)
	for i, t := range tensors {
		if isHead := slices.Contains(headNames, catalog.Parent(t.Name)); !isHead {
			tensors[i].Name = under + strings.TrimPrefix(t.Name, bare)
		}
	}
	based, err := inv.with(tensors)
	switch {
	case err != nil, best != nil && !based.hasBlocks(ctx, best),
		len(dict) > 0 && dict.CountMatching(ctx, based.modules) <=
			dict.CountMatching(ctx, inv.modules):
		return inv
	}
	return based
}

// isRenamed reports whether a rule gives a tensor's name a prefix.
func (inv *inventory) isRenamed(rules [][2]string, prefix string) bool {
	return prefix != "" && slices.ContainsFunc(rules, func(rule [2]string) bool {
		return strings.HasPrefix(rule[1], prefix) && slices.ContainsFunc(inv.tensors,
			func(t Tensor) bool { return strings.HasPrefix(t.Name, rule[0]) })
	})
}

// score says how well an entry fits the source; 0 means that it doesn't.
func (r *reading) score(e *catalog.Entry, inv *inventory) int {
	if e.Layout.Family() != r.survey.Layout {
		return 0
	}
	return e.Score(r.cfg, inv.shape)
}

// checkEntry refuses an entry that can't be used for the source.
func (r *reading) checkEntry(e *catalog.Entry) error {
	switch {
	case e.Refuse != nil:
		return e.Refuse
	case e.Layout.Family() != r.survey.Layout:
		return refuse(hint.LikeLayout,
			"%s is for the layout %s, the source is %s", e.ID, e.Layout, r.survey.Layout)
	}
	return nil
}

// renamePaths renames all tensors to the module paths of the class that loads the output: the
// entry's class, or else the stated one. If that class has other modules, it notes that.
func (c *choice) renamePaths(ctx context.Context, inv *inventory) (*inventory, error) {
	if inv.changes(&c.facts) {
		if c.entry == nil {
			c.Loader.Transformers = "<5"
		}
		if c.facts.IsNew {
			c.foreign, c.mapped = c.cfg.Class(), c.foreign == ""
		}
	}
	rules := c.facts.Renames
	switch {
	case c.entry != nil:
		rules = c.entry.Renames()
	case c.mapped: // transformers renames more than these rules say, and wants the source's names
		rules = nil
	}
	named, err := inv.named(ctx, rules, c.PatternDict)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, t := range named.tensors {
		if t.Name != t.Source {
			n++
		}
	}
	if n > 0 && c.survey.Layout != catalog.ComfyUI {
		c.differ("%s stored under the module paths of current transformers instead of the "+
			"source's names", count(n, "tensor"))
	}
	return named, nil
}
