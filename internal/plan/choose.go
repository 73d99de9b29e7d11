package plan

// choosePatterns decides where the pattern dict comes from: the caller, a named entry, the catalogue, or the rule for
// unknown architectures. It also settles the output's layout.
func (p *planner) choosePatterns() error {
	switch {
	case p.opt.PatternDict != nil:
		if err := p.opt.PatternDict.check(); err != nil {
			return refuse(ReasonPattern, "write the pattern without that construct", "%v", err)
		}
		p.plan.PatternDict, p.plan.Provenance = p.opt.PatternDict.clone(), "given"
		p.entry = nil
	case p.opt.Like != "":
		p.entry = p.opt.Catalogue.find(p.opt.Like)
		if p.entry == nil {
			return refuse(ReasonUnknown, "the verb models lists all ids and repos", "the catalogue knows no %s", p.opt.Like)
		}
	default:
		p.entry = p.opt.Catalogue.match(p.survey, p.cfg, p.inv)
	}
	if err := p.useEntry(); err != nil {
		return err
	}
	return p.chooseLayout()
}

// useEntry takes over what the catalogue says about the model.
func (p *planner) useEntry() error {
	e := p.entry
	if e == nil {
		return nil
	}
	if e.Refuse != nil {
		return refuse(ReasonUnknown, e.Refuse.Hint, "%s", e.Refuse.Why)
	}
	if e.Layout.family() != p.survey.Layout {
		return refuse(ReasonLayout, "choose an entry for this layout, or the layout of that entry",
			"%s is for the layout %s, the source is %s", e.ID, e.Layout, p.survey.Layout)
	}
	p.plan.Entry, p.plan.Provenance = e.ID, e.Provenance
	p.plan.PatternDict, p.plan.Loader = e.PatternDict.clone(), e.Loader
	return nil
}

// chooseLayout: the caller's, else the one in which the class is published, else the source's.
func (p *planner) chooseLayout() error {
	p.plan.Layout = p.survey.Layout
	switch {
	case p.opt.Layout != "":
		p.plan.Layout = p.opt.Layout
	case p.entry != nil:
		p.plan.Layout = p.entry.Layout
	}
	return nil
}

// settlePatterns brings the dict into its final form for this model.
func (p *planner) settlePatterns() error {
	if p.entry == nil {
		return p.refuseHalfTied()
	}
	p.dropTiedPatterns()
	return nil
}

// dropTiedPatterns takes head and embedding out of a catalogue dict when they are tied: the embedding stays once in
// BF16, the head is not stored (docs/format.md §15).
func (p *planner) dropTiedPatterns() {
	if !p.plan.TiedEmbeddings {
		return
	}
	var kept PatternDict
	for _, pat := range p.plan.PatternDict {
		re, err := compilePython(pat.Regex)
		tied := p.entry.Tied
		if err == nil && (re.MatchString(tied.Head) || re.MatchString(tied.Embedding)) {
			continue
		}
		kept = append(kept, pat)
	}
	p.plan.PatternDict = kept
}

// renamePaths turns the source's names into module paths.
func (p *planner) renamePaths() error { return nil }

// comment adds what the user should know about the finished plan.
func (p *planner) comment() error {
	p.warnDTypes()
	return nil
}
