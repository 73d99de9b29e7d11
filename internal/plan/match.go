package plan

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// formUnits finds the units of the plan's dict and gives them their tensors; the tensors outside
// are the remainder.
func (d *draft) formUnits(ctx context.Context) error {
	found, err := d.plan.PatternDict.Match(ctx, d.inv.allModules())
	if err != nil {
		return err
	}
	var units []Unit
	for i, modules := range found {
		if len(modules) == 0 {
			return d.refuseNoMatch(d.plan.PatternDict[i].Regex)
		}
		for _, m := range modules {
			units = append(units, Unit{Path: m, Pattern: i})
		}
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

// groupByUnit sorts tensors under the unit that they lie in, and tensors outside all units under
// "".
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

// fillUnit gives a unit its attributes' weights and its siblings. below lists the tensors under the
// unit's path.
func (d *draft) fillUnit(u *Unit, below []Tensor) error {
	attrs := d.plan.PatternDict[u.Pattern].Attrs
	// a Linear or Embedding ignores the attribute list (docs/format.md §10)
	if len(attrs) == 0 || isLeaf(u.Path, below) {
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

// unitWeight returns the weight of an attribute, or of the unit itself for "". It refuses a tensor
// that is missing, not 2-D, or not of a convertible type.
func (d *draft) unitWeight(u *Unit, attr string) (Tensor, error) {
	t, ok := d.inv.weight(u.Path, attr)
	pattern := d.plan.PatternDict[u.Pattern]
	switch {
	case !ok && len(pattern.Attrs) == 0:
		return t, refuse("list the attributes of the block in the pattern dict",
			"pattern %q has an empty list, but module %s has no weight of its own", pattern.Regex,
			u.Path)
	case !ok:
		return t, refuse(
			"remove the attribute, or give blocks with other attributes a pattern of their own",
			"module %s has no tensor %s", u.Path, weightName(u.Path, attr))
	case len(t.Shape) != 2:
		return t, refuse(
			"only weights of Linear and Embedding modules can be compressed; leave it out",
			"%s has %d dimensions, not 2", t.Name, len(t.Shape))
	case !d.opt.convertible(t.DType):
		return t, d.inv.refuseDType(t)
	}
	t.Attr, t.ExactF32 = attr, t.DType == safetensors.F32
	return t, nil
}

// Match finds which of the modules each pattern matches. It refuses patterns that the official
// loader would confuse, modules that two patterns match, and matches inside matches (docs/format.md
// §10, §14).
func (d PatternDict) Match(ctx context.Context, modules []string) (found [][]string, err error) {
	res, err := d.compile()
	if err == nil {
		err = d.checkMatching(slices.Concat(modules, loaderPaths(d)))
	}
	if err != nil {
		return nil, refuse(
			"name the modules to compress by fewer or simpler patterns with --pattern-dict", "%v",
			err)
	}
	owner := map[string]int{} // module → index of its pattern
	found = make([][]string, len(d))
	for i, re := range res {
		if found[i], err = matching(ctx, re, modules); err != nil {
			return nil, err
		}
		for _, m := range found[i] {
			if j, ok := owner[m]; ok {
				return nil, refuse("make the patterns disjoint",
					"module %s matches two patterns: %q and %q", m, d[j].Regex, d[i].Regex)
			}
			owner[m] = i
		}
	}
	if err := checkNesting(found, owner); err != nil {
		return nil, err
	}
	return found, checkLoaderLoop(ctx, d, res)
}

// matching lists the paths that a pattern matches.
func matching(ctx context.Context, re *regexp.Regexp, paths []string) (found []string, err error) {
	for _, p := range paths {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if re.MatchString(p) {
			found = append(found, p)
		}
	}
	return found, nil
}

// refuseNoMatch refuses a pattern that matches no module. Unless the caller wrote the pattern, tied
// embeddings, a lacking head or lacking weights are the cause.
func (d *draft) refuseNoMatch(regex string) error {
	detail, hint := fmt.Sprintf("pattern %q matches no module",
		regex), "remove it, or start from the dict that plan --write-pattern-dict writes"
	switch e := d.entry; {
	case d.plan.TiedEmbeddings:
		hint = "the embeddings are tied, so the head is not stored; remove head and embedding from the pattern dict"
	case e == nil:
	case e.Tied != nil && e.Tied.Head != "" && d.inv.holds(e.Tied.Embedding+".weight") &&
		!d.inv.holds(e.Tied.Head+".weight"):
		detail = "the source has no " + e.Tied.Head +
			".weight, although its embeddings are not tied"
		hint = "if they are, set tie_word_embeddings to true in a copy of the source; else its weights are incomplete"
	default:
		hint = incompleteHint
	}
	return refuse(hint, "%s", detail)
}

// checkNesting refuses a unit inside another: they would share a decode buffer (docs/format.md
// §14).
func checkNesting(found [][]string, owner map[string]int) error {
	for _, m := range slices.Concat(found...) {
		for p := parent(m); p != ""; p = parent(p) {
			if _, ok := owner[p]; ok {
				return refuse("match either the block or the modules inside it",
					"module %s lies inside module %s", m, p)
			}
		}
	}
	return nil
}

// checkLoaderLoop refuses a pattern that matches the parent of the last attribute of an earlier
// pattern: the official loader takes that path for the next module that it looks at (docs/format.md
// §14).
func checkLoaderLoop(ctx context.Context, d PatternDict, res []*regexp.Regexp) error {
	paths := loaderPaths(d)
	for j := range d {
		found, err := matching(ctx, res[j], paths[:j])
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return refuse("put that pattern before the other one",
				"pattern %q matches %q, the parent of the last attribute of %q, which confuses the official loader",
				d[j].Regex, found[0], d[slices.Index(paths, found[0])].Regex)
		}
	}
	return nil
}

// loaderPaths lists, for each pattern, the parent of its last attribute; "", which no pattern
// matches, where there is none.
func loaderPaths(d PatternDict) []string {
	paths := make([]string, len(d))
	for i, p := range d {
		if len(p.Attrs) > 0 {
			paths[i] = parent(p.Attrs[len(p.Attrs)-1])
		}
	}
	return paths
}
