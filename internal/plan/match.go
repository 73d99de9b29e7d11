package plan

import (
	"errors"
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// formUnits finds the units of the plan's dict and gives them their tensors; the tensors outside are the remainder.
func (d *draft) formUnits() error {
	units, err := matchUnits(d.plan.PatternDict, d.inv.allModules())
	if err != nil {
		return d.explainNoMatch(err)
	}
	below := groupByUnit(units, d.inv.tensors)
	for i := range units {
		if err := d.fillUnit(&units[i], below[units[i].Path]); err != nil {
			return err
		}
	}
	d.plan.Units = units
	d.plan.Remainder = below[""]
	return nil
}

// explainNoMatch replaces the advice about a pattern that matches nothing where the caller did not write the pattern, or
// where tied embeddings are the likely cause, since a tied model stores no head.
func (d *draft) explainNoMatch(err error) error {
	r, ok := errors.AsType[*RefusedError](err)
	if !ok || !strings.Contains(r.Detail, "matches no module") {
		return err
	}
	switch {
	case d.plan.TiedEmbeddings:
		r.Hint = "the embeddings are tied, so the head is not stored; remove head and embedding from the pattern dict"
	case d.entry != nil && d.lacksHead():
		r.Detail = "the source has no " + d.entry.Tied.Head + ".weight, although its embeddings are not tied"
		r.Hint = "if they are, set tie_word_embeddings to true in a copy of the source; else its weights are incomplete"
	case d.entry != nil:
		r.Hint = incompleteHint
	}
	return err
}

// lacksHead says whether the source stores the embedding but not the head that the catalog's entry expects.
func (d *draft) lacksHead() bool {
	t := d.entry.Tied
	return t != nil && t.Head != "" && d.inv.holds(t.Embedding+".weight") && !d.inv.holds(t.Head+".weight")
}

// groupByUnit sorts tensors under the unit that they lie in, and tensors outside all units under "".
func groupByUnit(units []Unit, tensors []Tensor) map[string][]Tensor {
	isUnit := map[string]bool{}
	for _, u := range units {
		isUnit[u.Path] = true
	}
	groups := map[string][]Tensor{}
	for _, t := range tensors {
		p := parent(t.Name)
		for p != "" && !isUnit[p] {
			p = parent(p)
		}
		groups[p] = append(groups[p], t)
	}
	return groups
}

// fillUnit gives a unit its attributes' weights and its siblings. below lists the tensors under the unit's path.
func (d *draft) fillUnit(u *Unit, below []Tensor) error {
	attrs := d.plan.PatternDict[u.Pattern].Attrs
	if len(attrs) == 0 || isLeaf(u.Path, below) { // a Linear or Embedding ignores the attribute list (docs/format.md §10)
		attrs = []string{""}
	}
	encoded := map[string]bool{}
	for _, attr := range attrs {
		t, err := d.unitWeight(u, attr)
		if err != nil {
			return err
		}
		u.Attrs = append(u.Attrs, t)
		encoded[t.Name] = true
	}
	for _, t := range below {
		if !encoded[t.Name] {
			u.Siblings = append(u.Siblings, t)
		}
	}
	return nil
}

// isLeaf says whether a module has a 2-D weight of its own and no sub-modules.
func isLeaf(module string, below []Tensor) bool {
	found := false
	for _, t := range below {
		if strings.Contains(t.Name[len(module)+1:], ".") {
			return false
		}
		found = found || t.Name == weightName(module, "") && len(t.Shape) == 2
	}
	return found
}

// unitWeight returns the weight of an attribute, or of the unit itself for "". It refuses a tensor that is missing, not 2-D, or
// not of a convertible type.
func (d *draft) unitWeight(u *Unit, attr string) (Tensor, error) {
	t, ok := d.inv.weight(u.Path, attr)
	pattern := d.plan.PatternDict[u.Pattern]
	switch {
	case !ok && len(pattern.Attrs) == 0:
		return t, refuse(ReasonPattern, "list the attributes of the block in the pattern dict",
			"pattern %q has an empty list, but module %s has no weight of its own", pattern.Regex, u.Path)
	case !ok:
		return t, refuse(ReasonPattern, "remove the attribute, or give blocks with other attributes a pattern of their own",
			"module %s has no tensor %s", u.Path, weightName(u.Path, attr))
	case len(t.Shape) != 2:
		return t, refuse(ReasonPattern, "only weights of Linear and Embedding modules can be compressed; leave it out",
			"%s has %d dimensions, not 2", t.Name, len(t.Shape))
	case !d.opt.convertible(t.DType):
		return t, d.inv.refuseDType(t)
	}
	t.Attr, t.ExactF32 = attr, t.DType == safetensors.F32
	return t, nil
}

// matchUnits finds the modules of each pattern, in natural order. It refuses patterns that match nothing or that the official
// loader would confuse, modules that two patterns match, and units inside units (docs/format.md §10, §14).
func matchUnits(d PatternDict, modules []string) ([]Unit, error) {
	res, err := compileAll(d)
	if err != nil {
		return nil, err
	}
	var units []Unit
	owner := map[string]int{} // unit → index of its pattern
	for i, re := range res {
		found := false
		for _, m := range modules {
			if !re.MatchString(m) {
				continue
			}
			if j, ok := owner[m]; ok {
				return nil, refuse(ReasonPattern, "make the patterns disjoint",
					"module %s matches two patterns: %q and %q", m, d[j].Regex, d[i].Regex)
			}
			owner[m] = i
			units = append(units, Unit{Path: m, Pattern: i})
			found = true
		}
		if !found {
			return nil, refuse(ReasonPattern, "remove it, or check the module paths with inspect",
				"pattern %q matches no module", d[i].Regex)
		}
	}
	if err := checkNesting(units, owner); err != nil {
		return nil, err
	}
	return units, checkLoaderLoop(d, res)
}

func compileAll(d PatternDict) ([]*regexp.Regexp, error) {
	if len(d) == 0 {
		return nil, refuse(ReasonPattern, "", "the pattern dict is empty")
	}
	if err := d.checkSize(); err != nil {
		return nil, refuse(ReasonPattern, "name the modules to compress by fewer patterns with --pattern-dict", "%v", err)
	}
	res := make([]*regexp.Regexp, len(d))
	for i, p := range d {
		re, err := compilePython(p.Regex)
		if err != nil {
			return nil, refuse(ReasonPattern, "write the pattern without that construct", "%v", err)
		}
		res[i] = re
	}
	return res, nil
}

// checkNesting refuses a unit inside another: they would share a decode buffer (docs/format.md §14).
func checkNesting(units []Unit, owner map[string]int) error {
	for _, u := range units {
		for p := parent(u.Path); p != ""; p = parent(p) {
			if _, ok := owner[p]; ok {
				return refuse(ReasonPattern, "match either the block or the modules inside it",
					"module %s lies inside module %s", u.Path, p)
			}
		}
	}
	return nil
}

// checkLoaderLoop refuses a pattern that matches the parent of the last attribute of an earlier pattern: the official loader
// takes that path for the next module that it looks at (docs/format.md §14).
func checkLoaderLoop(d PatternDict, res []*regexp.Regexp) error {
	for i, p := range d {
		if len(p.Attrs) == 0 {
			continue
		}
		last := parent(p.Attrs[len(p.Attrs)-1])
		for j := i + 1; j < len(d); j++ {
			if res[j].MatchString(last) {
				return refuse(ReasonPattern, "put that pattern before the other one",
					"pattern %q matches %q, the parent of the last attribute of %q, which confuses the official loader",
					d[j].Regex, last, p.Regex)
			}
		}
	}
	return nil
}
