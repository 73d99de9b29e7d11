package plan

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// expertName matches names of experts' weights. separateExpert matches those of a single expert.
var (
	expertName     = regexp.MustCompile(`expert|moe`)
	separateExpert = regexp.MustCompile(`experts?\.\d+\.`)
)

// NamesExperts reports whether a path names experts.
func NamesExperts(path string) bool { return expertName.MatchString(path) }

// IsFusedExperts reports whether the tensor holds the weights of all experts of a layer.
func (t Tensor) IsFusedExperts() bool { return len(t.Shape) == 3 && NamesExperts(t.Name) }

// HoldsParameters reports whether the unit needs the extension of docs/format.md §17.
func (u Unit) HoldsParameters() bool {
	return slices.ContainsFunc(u.Attrs, func(t Tensor) bool { return t.Parameter })
}

// HoldsParameters reports whether any unit needs the extension of docs/format.md §17.
func (p *Plan) HoldsParameters() bool { return slices.ContainsFunc(p.Units, Unit.HoldsParameters) }

// Version returns the version of the format that the output's config.json states (docs/format.md
// §12, §17).
func (p *Plan) Version() string {
	if p.HoldsParameters() {
		return ParametersVersion
	}
	return FormatVersion
}

// attribute returns the tensor that an attribute of a unit stands for: the weight of a module below
// the unit, or else a parameter of the unit's own module. For "" it returns the weight of the unit's
// module, or else the parameter with the unit's path (docs/format.md §17).
func (inv *inventory) attribute(unit, attr string) (Tensor, bool) {
	if t, ok := inv.weight(unit, attr); ok {
		return t, true
	}
	switch {
	case attr == "":
		return inv.get(unit)
	case attr == "weight" || strings.Contains(attr, "."):
		return Tensor{}, false
	}
	return inv.get(unit + "." + attr)
}

// fused reports whether an attribute of a unit is a tensor of fused experts that DF11 can hold.
func (inv *inventory) fused(unit, attr string) bool {
	t, ok := inv.attribute(unit, attr)
	return ok && t.IsFusedExperts() && inv.isConvertible(t)
}

// fusedExperts lists the fused experts that become units: for each module above them, their
// attributes, in the order in which most classes define them. Without fused experts, it's empty.
type fusedExperts map[string][]string

// findFused lists the fused experts of an inventory that DF11 can hold and that the entry doesn't
// leave in BF16. The entry may be nil.
func findFused(inv *inventory, e *catalog.Entry) fusedExperts {
	below := fusedExperts{}
	for _, t := range inv.tensors {
		path := strings.TrimSuffix(t.Name, ".weight")
		if !t.IsFusedExperts() || !inv.isConvertible(t) || e.Keeps(path) {
			continue
		}
		for in := catalog.Parent(path); in != ""; in = catalog.Parent(in) {
			below[in] = append(below[in], path[len(in)+1:])
		}
	}
	for _, attrs := range below {
		slices.SortFunc(attrs, catalog.CompareAttrs)
	}
	return below
}

// isIndirect reports whether a module has fused experts that aren't an attribute of its own, so that
// it can't be their unit.
func (f fusedExperts) isIndirect(module string, attrs []string) bool {
	return slices.ContainsFunc(attrs, func(a string) bool {
		return strings.Contains(a, ".") && slices.Contains(f[module], a)
	})
}

// slicesOf returns the paths of the slices of a parameter that is too large for one unit. There are
// as few as possible, all with as many rows, except for the last.
func slicesOf(t Tensor) (paths []string) {
	rows := t.Shape[0]
	most := max(1, maxElems/(t.NElems()/rows))
	n := (rows + most - 1) / most
	each := (rows + n - 1) / n
	for at := int64(0); at < rows; at += each {
		paths = append(paths, t.Name+"."+strconv.FormatInt(at, 10))
	}
	return paths
}

// parameters lists the parameters and the slices that a pattern without attributes may match.
func (inv *inventory) parameters() (names []string) {
	for _, t := range inv.tensors {
		if t.IsFusedExperts() {
			names = append(names, t.Name)
		}
	}
	return names
}

// rows lists the paths of all slices that fused experts may be cut into.
func (inv *inventory) rows() (paths []string) {
	for _, t := range inv.tensors {
		for i := int64(0); t.IsFusedExperts() && i < t.Shape[0]; i++ {
			paths = append(paths, t.Name+"."+strconv.FormatInt(i, 10))
		}
	}
	return paths
}

// maxRows bounds the rows of all fused experts of a model: Kimi K2 has 46,080 of two parameters.
const maxRows = 1 << 20

// cut replaces each parameter by the slices of it that a dict's patterns match. A slice begins at the
// row in its name, and ends where the next one begins (docs/format.md §17).
func (inv *inventory) cut(ctx context.Context, dict catalog.PatternDict) (*inventory, error) {
	var n int64
	for _, t := range inv.tensors {
		if t.IsFusedExperts() {
			n += t.Shape[0]
		}
	}
	if n == 0 || n > maxRows {
		return inv, nil
	}
	begins, err := beginnings(ctx, dict.Singles(), inv.rows())
	if err != nil || len(begins) == 0 {
		return inv, err
	}
	var tensors []Tensor
	for _, t := range inv.tensors {
		parts, err := t.slices(begins[t.Name])
		if err != nil {
			return nil, err
		}
		tensors = append(tensors, parts...)
	}
	return inv.with(tensors)
}

// beginnings returns the rows that patterns match, by parameter, in order.
func beginnings(ctx context.Context, dict catalog.PatternDict,
	rows []string) (map[string][]int64, error) {
	if len(dict) == 0 {
		return nil, nil
	}
	found, err := dict.MatchAny(ctx, rows)
	begins := map[string][]int64{}
	for _, path := range found {
		row, _ := strconv.ParseInt(catalog.Leaf(path), 10, 64) // rows wrote it
		begins[catalog.Parent(path)] = append(begins[catalog.Parent(path)], row)
	}
	return begins, err
}

// slices cuts a tensor at the given rows, which are in order. Without rows it returns the tensor.
func (t Tensor) slices(begins []int64) (parts []Tensor, err error) {
	if len(begins) == 0 {
		return []Tensor{t}, nil
	}
	if begins[0] != 0 {
		return nil, refuse(hint.FirstRow,
			"the pattern dict cuts %s into slices, and none begins at row 0", t.Name)
	}
	row := t.Length / t.Shape[0]
	for i, at := range begins {
		end := t.Shape[0]
		if i+1 < len(begins) {
			end = begins[i+1]
		}
		part := t
		part.Name, part.SliceOf = t.Name+"."+strconv.FormatInt(at, 10), t.Name
		part.Shape = append([]int64{end - at}, t.Shape[1:]...)
		part.Offset, part.Length = t.Offset+at*row, (end-at)*row
		parts = append(parts, part)
	}
	return parts, nil
}

// unitTensor returns the tensor of a unit's attribute. It refuses a tensor that is missing, that no
// unit can hold, or that has a type that isn't convertible.
func (inv *inventory) unitTensor(unit, attr string) (Tensor, error) {
	t, ok := inv.attribute(unit, attr)
	isWeight := t.Name == catalog.WeightName(unit, attr)
	switch {
	case !ok, isWeight && !t.IsFusedExperts():
		return inv.unitWeight(unit, attr)
	case len(t.Shape) < 2:
		return t, refuseDims(t)
	case !inv.isConvertible(t):
		return t, inv.refuseDType(t)
	}
	t.Attr, t.ExactF32, t.Parameter = attr, t.DType == safetensors.F32, true
	return t, nil
}

// refuseDims refuses a tensor whose number of dimensions no unit can hold.
func refuseDims(t Tensor) error {
	return refuse(hint.Dimensions,
		"%s has %d dimensions, not 2", t.Name, len(t.Shape))
}
