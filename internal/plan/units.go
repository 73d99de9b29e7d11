package plan

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// formUnits finds the units of the plan's dict and their tensors. The tensors outside are the
// remainder.
// A former forms the units of a model.
type former struct {
	*choice
	inv *inventory
}

func (f *former) formUnits(ctx context.Context) error {
	var err error
	if f.inv, err = f.inv.cut(ctx, f.PatternDict); err != nil {
		return err
	}
	found, err := f.PatternDict.Match(ctx, f.inv.modules, f.inv.parameters())
	if err != nil {
		return err
	}
	for i, modules := range found {
		if len(modules) == 0 {
			return refuse(hint.Incomplete, "pattern %q matches no module", f.PatternDict[i].Regex)
		}
		for _, m := range modules {
			f.Units = append(f.Units, Unit{Path: m, Pattern: i})
		}
	}
	f.formed = f.inv
	below := groupByUnit(f.Units, f.inv.tensors)
	for i := range f.Units {
		u := &f.Units[i]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := f.fillUnit(u, below[u.Path]); err != nil {
			return err
		}
	}
	f.Remainder = below[""]
	return nil
}

// groupByUnit groups tensors by the unit that they lie in. Tensors outside all units are under "".
func groupByUnit(units []Unit, tensors []Tensor) map[string][]Tensor {
	isUnit := map[string]bool{}
	for _, u := range units {
		isUnit[u.Path] = true
	}
	groups := map[string][]Tensor{}
	for _, t := range tensors {
		p := t.Name // a parameter may be a unit
		for p != "" && !isUnit[p] {
			p = catalog.Parent(p)
		}
		groups[p] = append(groups[p], t)
	}
	return groups
}

// fillUnit adds to a unit the weights of its pattern's attributes, and its siblings. below lists
// the tensors under the unit's path.
func (f *former) fillUnit(u *Unit, below []Tensor) error {
	attrs := f.PatternDict[u.Pattern].Attrs
	// a Linear or Embedding ignores the attribute list (docs/format.md §10)
	if len(attrs) == 0 || f.inv.isLeaf(u.Path) {
		attrs = []string{""}
	}
	encoded := map[string]bool{}
	for _, attr := range attrs {
		t, err := f.inv.unitTensor(u.Path, attr)
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

// cantFill says why no reader can fill the weights of modules as parts of a unit, or returns "". It
// asks the stated class and, if another one is built, that one.
func (r *reading) cantFill(inv *inventory, unit string, modules ...string) string {
	isParent := func(path string) bool { return inv.parents[path] }
	why := reader.CantFill(&r.facts, unit, modules, isParent)
	if why == "" && r.built != nil {
		why = reader.CantFill(r.built, unit, modules, isParent)
	}
	return why
}

// unitWeight returns the weight of an attribute of a module, or of the module itself for "". It
// refuses a tensor that is missing, not 2-D, or not of a convertible type.
func (inv *inventory) unitWeight(module, attr string) (Tensor, error) {
	t, ok := inv.weight(module, attr)
	switch {
	case !ok:
		return t, refuse(hint.Incomplete, "module %s has no tensor %s", module,
			catalog.WeightName(module, attr))
	case len(t.Shape) != 2:
		return t, refuseDims(t)
	case !inv.isConvertible(t):
		return t, refuseDType(t)
	}
	t.Attr, t.ExactF32 = attr, t.DType == safetensors.F32
	return t, nil
}
