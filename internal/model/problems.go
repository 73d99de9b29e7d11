package model

import (
	"context"
	"maps"
	"slices"
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
		err = c.checkPatterns(ctx, d.Dict)
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
// that DF11 can't hold.
func (c *checker) checkPatterns(ctx context.Context, dict catalog.PatternDict) error {
	modules, err := catalog.Modules(slices.Collect(maps.Keys(c.tensors)))
	var found [][]string
	if err == nil {
		found, err = dict.Match(ctx, modules)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		c.add(names.Config, err.Error())
		return nil
	}
	matched := map[string]bool{}
	for i, modules := range found {
		if len(modules) == 0 {
			c.add(dict[i].Regex, "it matches no module")
		}
		for _, m := range modules {
			matched[m] = true
		}
	}
	for _, u := range sorted(c.units) {
		if !matched[u] {
			c.add(u, "no pattern matches it")
		}
	}
	return nil
}

// checkPlan compares the model with the plan that made it.
func (c *checker) checkPlan(p *plan.Plan) {
	known := map[string]bool{}
	for _, u := range p.Units {
		c.checkUnit(u, known)
	}
	c.checkPlain(p.Remainder, known)
	for _, name := range sorted(c.tensors) {
		if !known[name] {
			c.add(name, "the source has no such tensor")
		}
	}
}

// checkUnit checks that a unit is stored, encoded or plain, with all its siblings.
func (c *checker) checkUnit(u plan.Unit, known map[string]bool) {
	if c.units[u.Path] {
		for _, n := range encoder.ArrayNames() {
			known[u.Path+"."+n] = true
		}
		if t, ok := c.tensors[u.Path+"."+encoder.NameSignMantissa]; ok && t.NElems() != u.NElems() {
			c.add(u.Path, "sign_mantissa doesn't have as many weights as the source")
		}
		if t, ok := c.tensors[u.Path+"."+encoder.NameSplitPositions]; ok &&
			t.NElems() != int64(len(u.Attrs)-1) {
			c.add(u.Path, "split_positions doesn't fit the number of attributes")
		}
	} else if _, ok := c.tensors[u.Attrs[0].Name]; ok {
		c.checkPlain(u.Attrs, known)
	} else {
		c.add(u.Path, "neither encoded nor plain")
	}
	c.checkPlain(u.Siblings, known)
}

// checkPlain checks that tensors are stored as in the source.
func (c *checker) checkPlain(want []plan.Tensor, known map[string]bool) {
	for _, w := range want {
		known[w.Name] = true
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
