package plan

import (
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// A division says which units the tensors of a checkpoint form, and which tensors lie outside.
type division struct {
	inv       *inventory // with slices in place of the parameters that the dict cuts
	units     []Unit     // by pattern, then by module; without their files
	remainder []Tensor   // tensors outside the units
	aliases   []Alias
}

// formUnits finds the units of a dict and their tensors. It refuses a dict that doesn't fit the
// source, a source that lacks blocks, and a model if DF11 can hold none of its units.
func formUnits(ctx context.Context, r *reading, m *recognition, c *checkpoint, d *dictionary,
	notes *Notes) (*division, error) {
	inv, err := c.inv.cut(ctx, d.patterns)
	if err != nil {
		return nil, err
	}
	v := &division{inv: inv}
	if v.units, err = matchUnits(ctx, d.patterns, inv); err != nil {
		return nil, err
	}
	if v.remainder, err = fillUnits(ctx, v.units, d.patterns, inv); err != nil {
		return nil, err
	}
	v.aliases = narrowed(c.aliases, v.units)
	if err := v.checkSize(); err != nil {
		return nil, err
	}
	if err := checkBlocks(r, m, v.units, d.patterns, inv, notes); err != nil {
		return nil, err
	}
	return v, markUnholdable(v.units, notes)
}

// matchUnits lists the modules that the patterns match, as units without tensors.
func matchUnits(ctx context.Context, patterns catalog.PatternDict, inv *inventory) (units []Unit, err error) {
	found, err := patterns.Match(ctx, inv.modules, inv.parameters())
	if err != nil {
		return nil, err
	}
	for i, modules := range found {
		if len(modules) == 0 {
			return nil, refuse(hint.Incomplete, "pattern %q matches no module", patterns[i].Regex)
		}
		for _, m := range modules {
			units = append(units, Unit{Path: m, Pattern: i})
		}
	}
	return units, nil
}

// fillUnits gives the units their tensors, and returns the tensors outside.
func fillUnits(ctx context.Context, units []Unit, patterns catalog.PatternDict,
	inv *inventory) (outside []Tensor, err error) {
	below := groupByUnit(units, inv.tensors)
	for i := range units {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		u := &units[i]
		u.Attrs, u.Siblings, err = unitTensors(u.Path, patterns[u.Pattern].Attrs, below[u.Path], inv)
		if err != nil {
			return nil, err
		}
	}
	return below[""], nil
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

// unitTensors divides the tensors below a unit's path into the weights of attributes, in their order,
// and siblings.
func unitTensors(unit string, attrs []string, below []Tensor,
	inv *inventory) (weights, siblings []Tensor, err error) {
	// a Linear or Embedding ignores the attribute list (docs/format.md §10)
	if len(attrs) == 0 || inv.isLeaf(unit) {
		attrs = []string{""}
	}
	isWeight := map[string]bool{}
	for _, attr := range attrs {
		t, err := inv.unitTensor(unit, attr)
		if err != nil {
			return nil, nil, err
		}
		weights = append(weights, t)
		isWeight[t.Name] = true
	}
	for _, t := range below {
		if !isWeight[t.Name] {
			siblings = append(siblings, t)
		}
	}
	return weights, siblings, nil
}

// isLeaf reports whether a module has a 2-D weight of its own and no sub-modules.
func (inv *inventory) isLeaf(module string) bool {
	t, ok := inv.weight(module, "")
	return ok && len(t.Shape) == 2 && !inv.parents[module]
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
		return t, inv.refuseDType(t)
	}
	t.Attr, t.ExactF32 = attr, t.DType == safetensors.F32
	return t, nil
}

// narrowed returns aliases with the types that the units give them. If a unit takes F32 as BF16, the
// copies of its weight are narrowed, too, and compared after that.
func narrowed(aliases []Alias, units []Unit) []Alias {
	if len(aliases) == 0 {
		return nil
	}
	inUnits := map[string]Tensor{}
	for _, u := range units {
		for _, t := range u.Attrs {
			inUnits[t.Name] = t
		}
	}
	aliases = slices.Clone(aliases)
	for i, a := range aliases {
		if t, ok := inUnits[a.Of.Name]; ok {
			aliases[i].Of, aliases[i].Tensor.ExactF32 = t, t.ExactF32
		}
	}
	return aliases
}

// plain lists all tensors that pass through: siblings by unit, then the remainder.
func (v *division) plain() []Tensor { return plainTensors(v.units, v.remainder) }

func plainTensors(units []Unit, remainder []Tensor) (all []Tensor) {
	for _, u := range units {
		all = append(all, u.Siblings...)
	}
	return append(all, remainder...)
}

// maxUnits is enough for 60 layers of 384 experts (docs/format.md §16).
const maxUnits = 32_768

// checkSize refuses more units than a plan may have, and more tensors in the output than readers
// accept.
func (v *division) checkSize() error {
	stored := len(encoder.ArrayNames())*len(v.units) + len(v.plain())
	if len(v.units) > maxUnits || stored > safetensors.MaxTensors {
		return refuse(hint.TooManyUnits, "the output would have %d modules and %d tensors: "+
			"more than %d or %d", len(v.units), stored, maxUnits, safetensors.MaxTensors)
	}
	return nil
}

// markUnholdable marks the units that DF11 can't hold, as far as headers show. It refuses a model
// without other units.
func markUnholdable(units []Unit, notes *Notes) error {
	var names []string
	for i := range units {
		u := &units[i]
		switch n := u.NElems(); {
		case n == 0:
			u.Unholdable = "empty"
		case n > maxElems || n < 0:
			u.Unholdable = "too_large"
		default:
			continue
		}
		names = append(names, u.Path)
	}
	if len(names) == len(units) {
		return refuse(hint.TooLarge,
			"DF11 can hold none of the %s: %s", human.Count(len(names), "module"), human.List(names))
	}
	if len(names) > 0 {
		notes.warn("left in BF16, because DF11 can't hold them: %s", human.Count(len(names), "module"))
	}
	return nil
}
