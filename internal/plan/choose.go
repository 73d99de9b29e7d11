package plan

import (
	"cmp"
	"slices"
	"strings"
)

// chooser chooses the pattern dict and the output's layout.
type chooser struct{ *draft }

// choose takes the dict from the caller, from a named entry, from the catalog, or from the rule for unknown classes.
func (c chooser) choose() error {
	known := c.recognize()
	switch {
	case c.opt.PatternDict != nil:
		if err := c.opt.PatternDict.check(); err != nil {
			return refuse(ReasonPattern, "write the pattern without that construct", "%v", err)
		}
		c.plan.PatternDict, c.plan.Provenance = c.opt.PatternDict.clone(), "given"
		c.chooseLayout()
		return c.useNames()
	case c.opt.Like != "":
		c.entry = findEntry(c.opt.Like)
		if c.entry == nil {
			return refuse(ReasonUnknown, likeHint(c.opt.Like), "the catalog has no entry %s", c.opt.Like)
		}
		c.plan.Unlike = c.entry.score(c.cfg, c.inv) == 0
	default:
		c.entry = known
	}
	if err := c.useEntry(); err != nil {
		return err
	}
	if c.plan.PatternDict == nil {
		if err := deriver(c).derive(); err != nil {
			return err
		}
	}
	c.chooseLayout()
	return nil
}

// recognize returns the source's entry in the catalog, or nil. It notes a source whose names do not fit its stated class.
func (c chooser) recognize() *Entry {
	e := c.bestEntry()
	if e != nil && !c.hasBlocks(e) {
		c.foreign = c.statedClass(e)
		return nil
	}
	return e
}

// statedClass returns the class that the config names, if the catalog knows its module paths: it cannot load other
// paths. Code that comes with the model may define another class of that name.
func (c chooser) statedClass(e *Entry) string {
	switch {
	case c.cfg.holds("auto_map"):
		return ""
	case c.cfg.ClassName != "" && slices.Contains(e.Match.ClassName, c.cfg.ClassName):
		return c.cfg.ClassName
	case c.cfg.hasArchitecture(e.Match.Architectures) && !strings.HasSuffix(c.cfg.Architectures[0], "Model"):
		return c.cfg.Architectures[0]
	}
	return ""
}

// hasBlocks says whether the source has any block of an entry. A relative of the class can have other paths: it is unknown.
func (c chooser) hasBlocks(e *Entry) bool {
	if len(e.PatternDict) == 0 {
		return true
	}
	renamed := &inventory{}
	for _, t := range c.inv.tensors {
		renamed.tensors = append(renamed.tensors, Tensor{Name: e.rename(t.Name)})
	}
	return slices.ContainsFunc(e.PatternDict, func(p Pattern) bool {
		modules, err := renamed.matching(p.Regex)
		return err == nil && len(p.Attrs) > 0 && len(modules) > 0
	})
}

// useNames takes over how an entry names and ties tensors, although the dict is given. A finished model is planned again
// in this way, because its config.json states the dict but not what became of the source's names.
func (c chooser) useNames() error {
	if c.opt.NamesOf == "" {
		return nil
	}
	e := findEntry(c.opt.NamesOf)
	if e == nil || e.Refuse != nil || e.Derive || e.Layout.family() != c.survey.Layout {
		return refuse(ReasonUnknown, "", "the catalog has no names of %s for this layout", c.opt.NamesOf)
	}
	c.entry = e
	return nil
}

// useEntry takes over what the catalog says about the model.
func (c chooser) useEntry() error {
	e := c.entry
	switch {
	case e == nil:
		return nil
	case e.Derive:
		c.entry = nil
		return nil
	case e.Refuse != nil:
		return refuse(ReasonUnknown, e.Refuse.Hint, "%s", e.Refuse.Why)
	case e.Layout.family() != c.survey.Layout:
		return refuse(ReasonLayout, "choose an entry for this layout, or the layout of that entry",
			"%s is for the layout %s, the source is %s", e.ID, e.Layout, c.survey.Layout)
	}
	c.plan.Entry, c.plan.Provenance = e.ID, e.Provenance
	c.plan.PatternDict, c.plan.Loader = e.PatternDict.clone(), e.Loader
	return nil
}

// chooseLayout takes the caller's layout, else the one in which the class is published, else the source's.
func (c chooser) chooseLayout() {
	c.plan.Layout = c.survey.Layout
	if c.entry != nil {
		c.plan.Layout = c.entry.Layout
	}
	c.plan.Layout = cmp.Or(c.opt.Layout, c.plan.Layout)
}

// Fitting lists the ids of the entries that fit a source: New's choice first, then those that only Options.Like can choose.
func Fitting(src Source, opt Options) ([]string, error) {
	d, err := newDraft(src, opt)
	if err != nil {
		return nil, err
	}
	if err := d.takeTensors(); err != nil {
		return nil, err
	}
	var ids []string
	best := d.bestEntry()
	if best != nil && (chooser{d}).hasBlocks(best) {
		ids = append(ids, best.ID)
	}
	for i := range Catalog() {
		e := &Catalog()[i]
		if e != best && e.Layout.family() == d.survey.Layout && e.score(d.cfg, d.inv) > 0 {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}
