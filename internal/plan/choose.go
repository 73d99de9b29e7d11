package plan

import (
	"slices"
	"strings"
)

// choosePatterns decides where the pattern dict comes from: the caller, a named entry, the catalogue, or the rule for
// unknown architectures. It also settles the output's layout.
func (p *planner) choosePatterns() error {
	known := p.recognise()
	switch {
	case p.opt.PatternDict != nil:
		if err := p.opt.PatternDict.check(); err != nil {
			return refuse(ReasonPattern, "write the pattern without that construct", "%v", err)
		}
		p.plan.PatternDict, p.plan.Provenance = p.opt.PatternDict.clone(), "given"
		p.chooseLayout()
		return p.useNames()
	case p.opt.Like != "":
		p.entry = p.opt.Catalogue.find(p.opt.Like)
		if p.entry == nil {
			return refuse(ReasonUnknown, "the verb models lists all ids and repos", "the catalogue knows no %s", p.opt.Like)
		}
		p.plan.Unlike = p.entry.Match.score(p.cfg, p.inv, p.entry) == 0
	default:
		p.entry = known
	}
	if err := p.useEntry(); err != nil {
		return err
	}
	if p.plan.PatternDict == nil {
		if err := p.derive(); err != nil {
			return err
		}
	}
	p.chooseLayout()
	return nil
}

// recognise returns the catalogue's entry for the source, nil if it has none, and notes if the source's names are not
// those of the class that it states.
func (p *planner) recognise() *Entry {
	e := p.opt.Catalogue.match(p.survey, p.cfg, p.inv)
	if e != nil && !p.fits(e) {
		p.plan.foreign = p.statedClass(e)
		return nil
	}
	return e
}

// statedClass returns the class that the config names, if it is the one of which an entry knows the module paths: no
// other paths can be loaded into it. Code that comes with the model may define another class of that name.
func (p *planner) statedClass(e *Entry) string {
	switch {
	case p.cfg.holds("auto_map"):
		return ""
	case p.cfg.ClassName != "" && slices.Contains(e.Match.ClassName, p.cfg.ClassName):
		return p.cfg.ClassName
	case p.cfg.hasArchitecture(e.Match.Architectures) && !strings.HasSuffix(p.cfg.Architectures[0], "Model"):
		return p.cfg.Architectures[0]
	}
	return ""
}

// fits says whether the source has any block of an entry: a relative of the class can have other module paths, and is
// then treated as unknown.
func (p *planner) fits(e *Entry) bool {
	rules, err := compileRules(e.PathRename)
	if err != nil || len(e.PatternDict) == 0 {
		return true
	}
	renamed := &inventory{}
	for _, t := range p.inv.tensors {
		renamed.tensors = append(renamed.tensors, Tensor{Name: rename(rules, t.Name)})
	}
	modules := renamed.allModules()
	for _, pat := range e.PatternDict {
		re, err := compilePython(pat.Regex)
		if err == nil && len(pat.Attrs) > 0 && slices.ContainsFunc(modules, re.MatchString) {
			return true
		}
	}
	return false
}

// useNames takes over how an entry names and ties tensors, while the dict is given: so is a finished model planned again,
// whose config.json states the dict but not what became of the source's names.
func (p *planner) useNames() error {
	if p.opt.NamesOf == "" {
		return nil
	}
	e := p.opt.Catalogue.find(p.opt.NamesOf)
	if e == nil || e.Refuse != nil || e.Derive || e.Layout.family() != p.survey.Layout {
		return refuse(ReasonUnknown, "the verb models lists all ids and repos", "the catalogue has no names of %s for this layout", p.opt.NamesOf)
	}
	p.entry = e
	return nil
}

// Fitting lists the ids of the catalogue entries that a source fits, best first: the one that New would take, then those
// that it takes only if asked for.
func Fitting(src Source, opt Options) ([]string, error) {
	p, err := newPlanner(src, opt)
	if err != nil {
		return nil, err
	}
	if err := p.takeTensors(); err != nil {
		return nil, err
	}
	var ids []string
	best := p.opt.Catalogue.match(p.survey, p.cfg, p.inv)
	if best != nil && p.fits(best) {
		ids = append(ids, best.ID)
	}
	for i := range p.opt.Catalogue.Entries {
		e := &p.opt.Catalogue.Entries[i]
		if e != best && e.Layout.family() == p.survey.Layout && e.Match.score(p.cfg, p.inv, e) > 0 {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}

// useEntry takes over what the catalogue says about the model.
func (p *planner) useEntry() error {
	e := p.entry
	if e == nil {
		return nil
	}
	if e.Derive {
		p.entry = nil
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
func (p *planner) chooseLayout() {
	p.plan.Layout = p.survey.Layout
	switch {
	case p.opt.Layout != "":
		p.plan.Layout = p.opt.Layout
	case p.entry != nil:
		p.plan.Layout = p.entry.Layout
	}
}

// comment adds what the user should know about the finished plan.
func (p *planner) comment() error {
	p.warnDTypes()
	p.warnLowGain()
	if p.entry != nil && p.entry.Unchecked {
		p.warn(WarnUnchecked, nil, "the catalogue's names for this model were not compared with its class: %s", p.entry.Verification)
	}
	if p.plan.foreign != "" {
		p.warn(WarnUnchecked, nil, "the tensor names are not the module paths of %s, which the config states: that class cannot load the output",
			p.plan.foreign)
	}
	if n := len(p.plan.Units); n > manyUnits {
		p.warn(WarnSlowLoad, nil, "%d units: the official loader lists the whole model once per stored tensor and may take hours", n)
	}
	p.noteOfficial()
	if p.entry != nil && !p.entry.LikeOnly {
		p.plan.comfyClass = p.entry.Match.ComfyUIClass
	}
	p.plan.Readers = p.plan.Lint()
	return nil
}

// manyUnits is about the number of units from which the official loader is slow: it calls state_dict() for each of the
// six tensors of each unit.
const manyUnits = 4000

// warnLowGain tells when most of the model passes through unchanged.
func (p *planner) warnLowGain() {
	units, plain := p.plan.UnitBytes(), p.plan.PlainBytes()
	if units < plain {
		p.warn(WarnLowGain, nil, "only %d %% of the bytes are in units, the rest passes through unchanged", 100*units/(units+plain))
	}
}

// noteOfficial lists where the official compressor would have written something else.
func (p *planner) noteOfficial() {
	if p.plan.Split {
		p.differ("layers are split into smaller units, because a layer exceeds 2^31-1 weights")
	}
	if extra := p.extraLayerTensors(); extra > 0 {
		p.differ("%s of layers that the model class does not build are kept; the official route drops them",
			count(extra, "tensor"))
	}
	if n := p.foreignSiblings(); n > 0 {
		p.differ("%s keep the source's type; the official route casts them to the model's", count(n, "plain tensor"))
	}
}

// extraLayerTensors counts tensors of layers behind those that the config counts.
func (p *planner) extraLayerTensors() int {
	n := 0
	for _, t := range p.plan.Remainder {
		for _, c := range splitsOf(parent(t.Name)) {
			if p.isExtraLayer(stackRegex(c.stack, nil), c.index) {
				n++
				break
			}
		}
	}
	return n
}

// foreignSiblings counts plain floating-point tensors in another type than the model's.
func (p *planner) foreignSiblings() int {
	n := 0
	for _, w := range p.plan.Warnings {
		if w.Code == WarnDType {
			n += len(w.Names)
		}
	}
	return n
}
