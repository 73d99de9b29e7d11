package plan

import (
	"regexp"
	"strings"
)

// matchUnits finds the modules that each pattern matches, by pattern and then in natural order. It refuses patterns
// that match nothing, modules that two patterns match, units inside units, and patterns that the official loader would
// confuse (docs/format.md §10, §14).
func matchUnits(d PatternDict, modules []string) ([]Unit, error) {
	res, err := compileAll(d)
	if err != nil {
		return nil, err
	}
	var units []Unit
	owner := map[string]int{}
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
	if err := checkNesting(units); err != nil {
		return nil, err
	}
	return units, checkLoaderLoop(d, res)
}

// compileAll compiles every regex of a dict.
func compileAll(d PatternDict) ([]*regexp.Regexp, error) {
	if len(d) == 0 {
		return nil, refuse(ReasonPattern, "", "the pattern dict is empty")
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

// checkNesting refuses a unit inside another: they would share one decode buffer (docs/format.md §14).
func checkNesting(units []Unit) error {
	paths := map[string]bool{}
	for _, u := range units {
		paths[u.Path] = true
	}
	for _, u := range units {
		for p := parent(u.Path); p != ""; p = parent(p) {
			if paths[p] {
				return refuse(ReasonPattern, "match either the block or the modules inside it",
					"unit %s lies inside unit %s", u.Path, p)
			}
		}
	}
	return nil
}

// checkLoaderLoop refuses a pattern that matches the parent of the last attribute of an earlier pattern: after a block
// the official loader goes on with that path (docs/format.md §14).
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

// fillUnit gives a unit its attributes' weights and its siblings. below lists the tensors under the unit's path.
func (p *planner) fillUnit(u *Unit, below []Tensor) error {
	names, attrs := p.weightNames(u, below)
	encoded := map[string]bool{}
	for i, name := range names {
		t, err := p.weight(u, name, attrs[i])
		if err != nil {
			return err
		}
		u.Attrs = append(u.Attrs, t)
		encoded[name] = true
	}
	for _, t := range below {
		if !encoded[t.Name] {
			u.Siblings = append(u.Siblings, t)
		}
	}
	return checkStoredNames(u)
}

// weightNames lists the tensors that a unit encodes. A module with a weight of its own and nothing below it is a
// Linear or Embedding, which ignores the attribute list (docs/format.md §10).
func (p *planner) weightNames(u *Unit, below []Tensor) (names, attrs []string) {
	own := u.Path + ".weight"
	list := p.plan.PatternDict[u.Pattern].Attrs
	if len(list) == 0 || isLeaf(own, below) {
		return []string{own}, []string{""}
	}
	for _, a := range list {
		names = append(names, u.Path+"."+a+".weight")
	}
	return names, list
}

// isLeaf says whether the module has a 2-D weight of its own and no sub-modules.
func isLeaf(own string, below []Tensor) bool {
	found := false
	for _, t := range below {
		if strings.Contains(t.Name[len(own)-len("weight"):], ".") {
			return false
		}
		found = found || t.Name == own && len(t.Shape) == 2
	}
	return found
}

// storedNames are the tensors that a unit gets in the output (docs/format.md §8).
var storedNames = [...]string{
	"luts", "encoded_exponent", "sign_mantissa", "output_positions", "gaps", "split_positions",
}

// checkStoredNames refuses siblings that have the name of one of the six stored tensors.
func checkStoredNames(u *Unit) error {
	for _, t := range u.Siblings {
		for _, n := range storedNames {
			if t.Name == u.Path+"."+n {
				return refuse(ReasonName, "the source may be a DF11 model already; decode it first",
					"tensor %s has the name of a stored DF11 tensor", t.Name)
			}
		}
	}
	return nil
}
