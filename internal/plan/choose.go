package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// chooseDict takes the dict from the caller, from a named entry, from the catalog, or from the rule
// for unknown classes. Names and ties of a named entry apply to a dict of the caller, too: the
// config.json of a finished model states its dict alone.
func (d *draft) chooseDict(ctx context.Context) error {
	known := d.recognize(ctx)
	switch {
	case d.opt.Like != "":
		if d.entry = findEntry(d.opt.Like); d.entry == nil {
			return refuse(likeHint(d.opt.Like), "the catalog has no entry %s", d.opt.Like)
		}
	case d.opt.PatternDict == nil:
		d.entry = known
	}
	if err := d.checkEntry(); err != nil {
		return err
	}
	p := d.plan
	p.Layout = d.survey.Layout
	switch e := d.entry; {
	case d.opt.PatternDict != nil:
		p.PatternDict, p.Provenance = d.opt.PatternDict, "given"
	case e == nil:
		p.Provenance, p.Loader = "derived", d.cfg.guessLoader()
	default:
		p.Layout, p.Entry, p.Provenance, p.Unlike = e.Layout, e.ID, e.Provenance, e.score(d.cfg,
			d.inv) == 0
		p.PatternDict, p.Loader = e.PatternDict, e.Loader
		if listed := e.Match.Architectures; slices.Contains(listed, e.Loader.Class) &&
			slices.Contains(listed, d.cfg.class()) {
			p.Loader.Class = d.cfg.class()
		}
	}
	p.Layout = cmp.Or(d.opt.Layout, p.Layout)
	return nil
}

// recognize returns the source's entry in the catalog, or nil. It notes a source whose names do not
// fit its stated class.
func (d *draft) recognize(ctx context.Context) *Entry {
	e := d.bestEntry()
	if e != nil && !d.inv.hasBlocks(ctx, e) {
		d.foreign = d.cfg.statedClass(e)
		return nil
	}
	return e
}

// bestEntry returns the entry with the highest score, the first of equals; nil if none fits. It
// leaves like-only entries out.
func (d *draft) bestEntry() *Entry {
	var best *Entry
	most := 0
	for _, e := range Catalog() {
		if e.LikeOnly || e.Layout.family() != d.survey.Layout {
			continue
		}
		if n := e.score(d.cfg, d.inv); n > most {
			best, most = e, n
		}
	}
	return best
}

// statedClass returns the class that the config names if the catalog knows its module paths, since
// it cannot load other paths. Code that comes with the model (auto_map) may define another class of
// that name.
func (c *config) statedClass(e *Entry) string {
	switch {
	case c.holds("auto_map"):
		return ""
	case c.ClassName != "" && slices.Contains(e.Match.ClassName, c.ClassName):
		return c.ClassName
	case c.hasArchitecture(e.Match.Architectures) && !strings.HasSuffix(c.Architectures[0],
		"Model"):
		return c.Architectures[0]
	}
	return ""
}

// hasBlocks says whether the source has any block of an entry. A relative of the class can have
// other paths: it is unknown.
func (inv *inventory) hasBlocks(ctx context.Context, e *Entry) bool {
	blocks := slices.DeleteFunc(slices.Clone(e.PatternDict),
		func(p Pattern) bool { return len(p.Attrs) == 0 })
	return len(e.PatternDict) == 0 || inv.named(ctx, e.Renames(), e.PatternDict).nMatching(ctx,
		blocks) > 0
}

// checkEntry refuses an entry that cannot be used, and forgets one that knows no dict.
func (d *draft) checkEntry() error {
	e := d.entry
	switch {
	case e == nil:
		return nil
	case e.Derive:
		d.entry = nil
		return nil
	case e.Refuse != nil:
		return refuse(e.Refuse.Hint, "%s", e.Refuse.Why)
	case e.Layout.family() != d.survey.Layout:
		return refuse("choose an entry for this layout, or the layout of that entry",
			"%s is for the layout %s, the source is %s", e.ID, e.Layout, d.survey.Layout)
	}
	return nil
}

// Fitting lists the ids of the entries that fit a source: the one that [New] chooses, then all
// others, like-only ones included.
func Fitting(ctx context.Context, src Source, opt Options) ([]string, error) {
	d, err := newDraft(src, opt)
	if err != nil {
		return nil, err
	}
	if err := d.takeTensors(); err != nil {
		return nil, err
	}
	var ids []string
	best := d.bestEntry()
	if best != nil && d.inv.hasBlocks(ctx, best) {
		ids = append(ids, best.ID)
	}
	for _, e := range Catalog() {
		if e != best && e.Layout.family() == d.survey.Layout && e.score(d.cfg, d.inv) > 0 {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}
