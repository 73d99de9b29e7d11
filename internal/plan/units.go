package plan

import (
	"context"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// formUnits finds the units of a dict and their tensors. The tensors outside are the remainder.
func (f *former) formUnits(ctx context.Context, dict catalog.PatternDict) (units []Unit,
	rest []Tensor, err error) {
	found, err := dict.Match(ctx, f.inv.modules)
	if err != nil {
		return nil, nil, err
	}
	for i, modules := range found {
		if len(modules) == 0 {
			return nil, nil, f.refuseNoMatch(dict[i].Regex)
		}
		for _, m := range modules {
			units = append(units, Unit{Path: m, Pattern: i})
		}
	}
	below := groupByUnit(units, f.inv.tensors)
	for i := range units {
		u := &units[i]
		if err := f.fillUnit(u, dict[u.Pattern], below[u.Path]); err != nil {
			return nil, nil, err
		}
	}
	return units, below[""], nil
}

// groupByUnit groups tensors by the unit that they lie in. Tensors outside all units are under "".
func groupByUnit(units []Unit, tensors []Tensor) map[string][]Tensor {
	isUnit := map[string]bool{}
	for _, u := range units {
		isUnit[u.Path] = true
	}
	groups := map[string][]Tensor{}
	for _, t := range tensors {
		p := catalog.Parent(t.Name)
		for p != "" && !isUnit[p] {
			p = catalog.Parent(p)
		}
		groups[p] = append(groups[p], t)
	}
	return groups
}

// fillUnit adds to a unit the weights of its pattern's attributes, and its siblings. below lists
// the tensors under the unit's path.
func (f *former) fillUnit(u *Unit, pattern catalog.Pattern, below []Tensor) error {
	attrs := pattern.Attrs
	// a Linear or Embedding ignores the attribute list (docs/format.md §10)
	if len(attrs) == 0 || f.inv.isLeaf(u.Path) {
		attrs = []string{""}
	}
	encoded := map[string]bool{}
	for _, attr := range attrs {
		t, err := f.unitWeight(u, pattern, attr)
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

// isLeaf reports whether a module has a 2-D weight of its own and no sub-modules.
func (inv *inventory) isLeaf(module string) bool {
	t, ok := inv.weight(module, "")
	return ok && len(t.Shape) == 2 && !inv.parents[module]
}

// cantFill says why no reader can fill the weights of modules as parts of a unit, or returns "".
func (inv *inventory) cantFill(class *catalog.Facts, unit string, modules ...string) string {
	return reader.CantFill(class, unit, modules, func(path string) bool { return inv.parents[path] })
}

// unfilled returns the reason for each unit that no reader can fill.
func (c *choice) unfilled(inv *inventory, units []Unit) (why []string) {
	for _, u := range units {
		modules, attrs := make([]string, len(u.Attrs)), make([]string, len(u.Attrs))
		for i, t := range u.Attrs {
			modules[i], attrs[i] = catalog.Parent(t.Name), t.Attr
		}
		no := inv.cantFill(&c.facts, u.Path, modules...)
		if no == "" && c.node != nil {
			no = reader.NodeCantFill(c.node, u.Path, attrs)
		}
		if no != "" {
			why = append(why, no)
		}
	}
	return why
}

// unitWeight returns the weight of an attribute, or of the unit itself for "". It refuses a tensor
// that is missing, not 2-D, or not of a convertible type.
func (f *former) unitWeight(u *Unit, pattern catalog.Pattern, attr string) (Tensor, error) {
	t, ok := f.inv.weight(u.Path, attr)
	switch {
	case !ok && len(pattern.Attrs) == 0:
		return t, refuse("list the attributes of the block in the pattern dict",
			"pattern %q has an empty list, but module %s has no weight of its own", pattern.Regex,
			u.Path)
	case !ok:
		return t, refuse(
			"remove the attribute, or give blocks with other attributes a pattern of their own",
			"module %s has no tensor %s", u.Path, catalog.WeightName(u.Path, attr))
	case len(t.Shape) != 2:
		return t, refuse(
			"only weights of Linear and Embedding modules can be compressed; leave it out",
			"%s has %d dimensions, not 2", t.Name, len(t.Shape))
	case !f.inv.isConvertible(t):
		return t, refuseDType(t)
	}
	t.Attr, t.ExactF32 = attr, t.DType == safetensors.F32
	return t, nil
}

// refuseNoMatch refuses a pattern that matches no module. If the caller didn't write the pattern,
// the cause is tied embeddings, a missing head, or missing weights.
func (f *former) refuseNoMatch(regex string) error {
	detail, hint := fmt.Sprintf("pattern %q matches no module",
		regex), "remove it, or start from pattern_dict in the output of plan --json"
	switch e := f.entry; {
	case f.tied:
		hint = "the embeddings are tied, so the head isn't stored; remove head and embedding from the pattern dict"
	case e == nil:
	case e.Tied != nil && e.Tied.Head != "" && f.inv.holds(e.Tied.Embedding+".weight") &&
		!f.inv.holds(e.Tied.Head+".weight"):
		detail = "the source has no " + e.Tied.Head +
			".weight, although its embeddings aren't tied"
		hint = "if they are tied, set tie_word_embeddings to true in a copy of the source; otherwise its weights are incomplete"
	default:
		hint = incompleteHint
	}
	return refuse(hint, "%s", detail)
}
