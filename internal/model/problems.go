package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// A Problem is a way in which a DF11 model loads wrong (docs/format.md §14).
type Problem struct {
	Name   string `json:"name"` // tensor, unit or file
	Detail string `json:"detail"`
}

// Problems returns why the model would load wrong, as far as its headers and config show. p is the
// plan that the model should come from. Since p's patterns match its modules, Problems compares
// tensors and dict with p and matches no pattern again. Tensors may be in other files than the plan
// says: other programs name and split files as they like.
func (d *DF11) Problems(p *plan.Plan) []Problem {
	c := newChecker(d.tensors)
	if d.Dict != nil && !d.Dict.Equal(p.PatternDict) {
		c.add(names.Config, "its pattern dict differs from the plan's")
	}
	if d.Dict != nil && (d.Version == plan.ParametersVersion) != p.HoldsParameters() {
		c.add(names.Config, fmt.Sprintf("its format version is %q, and the modules need %q",
			d.Version, p.Version()))
	}
	c.checkPlan(p)
	return c.problems
}

// ProblemsAlone returns the problems that show without a plan. It returns an error only if ctx
// ends.
func (d *DF11) ProblemsAlone(ctx context.Context) ([]Problem, error) {
	c := newChecker(d.tensors)
	var err error
	switch {
	case d.Dict != nil:
		err = c.checkPatterns(ctx, d.Dict, d.Version == plan.ParametersVersion)
	case len(d.loaded) > 1:
		c.add(names.Config,
			"none has dfloat11_config, so nothing says which modules are compressed")
	}
	return c.problems, err
}

// CheckHeader returns the problems of one output file. p holds that file's tensors only.
func CheckHeader(h *safetensors.Header, p *plan.Plan) []Problem {
	tensors := map[string]Stored{}
	for _, t := range h.Tensors {
		tensors[t.Name] = Stored{Tensor: t}
	}
	c := newChecker(tensors)
	c.checkPlan(p)
	return c.problems
}

// A checker collects the problems of one DF11 model.
type checker struct {
	tensors  map[string]Stored
	units    map[string]bool // paths with any of the six tensors
	problems []Problem
}

// newChecker finds the units and checks the tensors of each.
func newChecker(tensors map[string]Stored) *checker {
	c := &checker{tensors: tensors, units: map[string]bool{}}
	for name := range tensors {
		if dot := strings.LastIndexByte(name, '.'); encoder.IsArrayName(name[dot+1:]) {
			c.units[name[:max(dot, 0)]] = true
		}
	}
	for _, u := range sorted(c.units) {
		c.checkArrays(u)
	}
	return c
}

// checkArrays checks the six tensors of a unit (docs/format.md §8).
func (c *checker) checkArrays(unit string) {
	for _, n := range encoder.ArrayNames() {
		t, ok := c.tensors[unit+"."+n]
		if !ok {
			c.add(unit, "it has no "+n)
		} else if err := encoder.CheckArray(n, string(t.DType), t.Shape); err != nil {
			c.add(unit, n+" is "+err.Error())
		}
	}
}

// sorted returns the keys of a map in natural order.
func sorted[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), human.CompareNames)
}

func (c *checker) add(name, detail string) {
	c.problems = append(c.problems, Problem{name, detail})
}

// checkPatterns matches a dict's patterns with the units, and with plain modules, such as units
// that DF11 can't hold. isExtended says that the dict may name parameters (docs/format.md §17).
func (c *checker) checkPatterns(ctx context.Context, dict catalog.PatternDict,
	isExtended bool) error {
	modules, err := catalog.Modules(slices.Collect(maps.Keys(c.tensors)))
	var found [][]string
	if err == nil {
		found, err = dict.Match(ctx, modules, c.parameters())
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		c.add(names.Config, err.Error())
		return nil
	}
	matched := map[string]bool{}
	var singles []string
	for i, modules := range found {
		if len(dict[i].Attrs) == 0 {
			singles = append(singles, modules...)
		}
		if len(modules) == 0 {
			c.add(dict[i].Regex, "it matches no module")
		}
		for _, m := range modules {
			matched[m] = true
			c.checkTwice(m, dict[i].Attrs)
		}
	}
	if isExtended {
		c.checkSlices(singles)
	}
	for _, u := range sorted(c.units) {
		if !matched[u] {
			c.add(u, "no pattern matches it")
		}
	}
	return nil
}

// parameters lists the plain tensors that a pattern without attributes may stand for: parameters, or
// slices, that DF11 can't hold (docs/format.md §17).
func (c *checker) parameters() (list []string) {
	for name, t := range c.tensors {
		if len(t.Shape) > 2 {
			list = append(list, name)
		}
	}
	return list
}

// checkTwice refuses a tensor that a compressed unit holds, and that is also stored plainly: readers
// would take one or the other.
func (c *checker) checkTwice(unit string, attrs []string) {
	if !c.units[unit] {
		return
	}
	paths := []string{unit}
	if len(attrs) > 0 {
		paths = nil
	}
	for _, a := range attrs {
		paths = append(paths, unit+"."+a)
	}
	for _, p := range paths {
		for _, name := range []string{p, p + ".weight"} {
			if _, ok := c.tensors[name]; ok {
				c.add(name, "stored plainly, and in the compressed module "+unit)
			}
		}
	}
}

// checkSlices checks the slices of each parameter, by the paths of units that patterns without
// attributes match: a slice has as many weights as there are rows up to the next one (docs/format.md
// §17).
func (c *checker) checkSlices(units []string) {
	begins := map[string][]int64{} // parameter → rows at which its slices begin
	for _, u := range units {
		row, err := strconv.ParseInt(catalog.Leaf(u), 10, 64)
		if in := catalog.Parent(u); err == nil && plan.NamesExperts(in) {
			begins[in] = append(begins[in], row)
		}
	}
	for _, p := range sorted(begins) {
		rows := begins[p]
		slices.Sort(rows)
		if rows[0] != 0 {
			c.add(p, "no slice of it begins at row 0")
			continue
		}
		paths := make([]string, len(rows))
		for i, row := range rows {
			paths[i] = p + "." + strconv.FormatInt(row, 10)
		}
		for i := range len(rows) - 1 { // all rows have as many weights
			if c.nWeights(paths[i])*rows[1] != c.nWeights(paths[0])*(rows[i+1]-rows[i]) {
				c.add(paths[i], "it doesn't end where the next slice begins, at row "+
					strconv.FormatInt(rows[i+1], 10))
			}
		}
	}
}

// nWeights returns how many weights a unit has that is one tensor.
func (c *checker) nWeights(unit string) int64 {
	if c.units[unit] {
		t := c.tensors[unit+"."+encoder.NameSignMantissa]
		return t.NElems()
	}
	t := c.tensors[unit]
	return t.NElems()
}

// checkPlan compares the model with the plan that made it.
func (c *checker) checkPlan(p *plan.Plan) {
	planned := map[string]bool{}
	for _, u := range p.Units {
		c.checkUnit(u, planned)
	}
	c.checkPlain(p.Remainder, planned)
	for _, name := range sorted(c.tensors) {
		if !planned[name] {
			c.add(name, "the source has no such tensor")
		}
	}
}

// checkUnit checks that a unit is stored, encoded or plain, with all its siblings.
func (c *checker) checkUnit(u plan.Unit, planned map[string]bool) {
	if c.units[u.Path] {
		for _, n := range encoder.ArrayNames() {
			planned[u.Path+"."+n] = true
		}
		if t, ok := c.tensors[u.Path+"."+encoder.NameSignMantissa]; ok && t.NElems() != u.NElems() {
			c.add(u.Path, "sign_mantissa doesn't have as many weights as the source")
		}
		if t, ok := c.tensors[u.Path+"."+encoder.NameSplitPositions]; ok &&
			t.NElems() != int64(len(u.Attrs)-1) {
			c.add(u.Path, "split_positions doesn't fit the number of attributes")
		}
	} else if _, ok := c.tensors[u.Attrs[0].Name]; ok {
		c.checkPlain(u.Attrs, planned)
	} else {
		c.add(u.Path, "neither encoded nor plain")
	}
	c.checkPlain(u.Siblings, planned)
}

// checkPlain checks that tensors are stored as in the source.
func (c *checker) checkPlain(want []plan.Tensor, planned map[string]bool) {
	for _, w := range want {
		planned[w.Name] = true
		t, ok := c.tensors[w.Name]
		switch {
		case !ok:
			c.add(w.Name, "stored nowhere")
		case t.DType != w.StoredDType():
			c.add(w.Name, string(t.DType)+", the source has "+string(w.DType))
		case !slices.Equal(t.Shape, w.Shape):
			c.add(w.Name, "another shape than in the source")
		}
	}
}
