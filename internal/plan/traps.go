package plan

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Finished is a DF11 folder or file as its headers and config show it.
type Finished struct {
	PatternDict PatternDict // from config.json, in file order; nil without a config
	// every safetensors file in the folder: the official loader reads them all
	Files []WeightFile
}

// Problem is a way in which a DF11 model loads wrongly: a trap of docs/format.md §14.
type Problem struct {
	Name   string `json:"name"` // tensor, unit or file
	Detail string `json:"detail"`
}

// Check looks for the traps that headers and config show. want is the plan that made the model: its
// patterns match its modules, so tensors and dict are held against the plan, and no pattern is
// matched again.
func Check(finished Finished, want *Plan) []Problem {
	c := newChecker(finished)
	c.checkPlan(want)
	return c.problems
}

// CheckForeign is [Check] for a model of which nobody knows the plan. Its error is that of a ctx
// that ends.
func CheckForeign(ctx context.Context, finished Finished) ([]Problem, error) {
	c := newChecker(finished)
	switch {
	case finished.PatternDict != nil:
		return c.problems, c.checkPatterns(ctx)
	case len(finished.Files) > 1:
		c.add("config.json",
			"there is none with dfloat11_config: nothing says which modules are compressed")
	}
	return c.problems, nil
}

// checker collects the problems of one DF11 model.
type checker struct {
	finished Finished
	tensors  map[string]safetensors.Tensor
	units    []string // paths with any of the six tensors, sorted
	isUnit   map[string]bool
	problems []Problem
}

// newChecker finds tensors and units, and what is wrong with each by itself.
func newChecker(finished Finished) *checker {
	c := &checker{finished: finished, tensors: map[string]safetensors.Tensor{},
		isUnit: map[string]bool{}}
	for _, f := range finished.Files {
		for _, t := range f.Header.Tensors {
			if _, ok := c.tensors[t.Name]; ok {
				c.add(t.Name, "held by "+f.Path+" and another file")
			}
			c.tensors[t.Name] = t
		}
	}
	c.readUnits()
	return c
}

func (c *checker) add(name, detail string) {
	c.problems = append(c.problems, Problem{name, detail})
}

// readUnits finds the units and checks the six tensors of each (docs/format.md §8).
func (c *checker) readUnits() {
	for name := range c.tensors {
		last := leaf(name)
		if encoder.IsArrayName(last) && !c.isUnit[parent(name)] {
			c.isUnit[parent(name)] = true
			c.units = append(c.units, parent(name))
		}
	}
	slices.SortFunc(c.units, human.CompareNames)
	for _, u := range c.units {
		for _, n := range encoder.ArrayNames() {
			t, ok := c.tensors[u+"."+n]
			if !ok {
				c.add(u, "it has no "+n)
			} else if err := encoder.CheckArray(n, string(t.DType), t.Shape); err != nil {
				c.add(u, n+" is "+err.Error())
			}
		}
	}
}

// checkPatterns matches the config's patterns with the units, and with modules that are stored
// plainly, as units that DF11 cannot hold are.
func (c *checker) checkPatterns(ctx context.Context) error {
	var paths modulePaths
	var found [][]string
	var err error
	for name := range c.tensors {
		err = cmp.Or(err, paths.add(name))
	}
	if err == nil {
		found, err = c.finished.PatternDict.match(ctx,
			modulesOf(slices.Collect(maps.Keys(c.tensors))))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		c.add("config.json", err.Error())
		return nil
	}
	matched := map[string]bool{}
	for i, modules := range found {
		if len(modules) == 0 {
			c.add(c.finished.PatternDict[i].Regex, "it matches no module")
		}
		for _, m := range modules {
			matched[m] = true
		}
	}
	for _, u := range c.units {
		if !matched[u] {
			c.add(u, "no pattern matches it")
		}
	}
	return nil
}

// checkPlan looks for differences from the plan that made the model.
func (c *checker) checkPlan(p *Plan) {
	if c.finished.PatternDict != nil && !c.finished.PatternDict.Equal(p.PatternDict) {
		c.add("config.json", "its pattern dict is not the one that was encoded")
	}
	known := map[string]bool{}
	for _, u := range p.Units {
		c.checkUnit(u, known)
	}
	c.checkPlain(p.Remainder, known)
	// the last use of c.tensors
	maps.DeleteFunc(c.tensors, func(name string, _ safetensors.Tensor) bool { return known[name] })
	for _, name := range sortedPaths(c.tensors) {
		c.add(name, "the source has no such tensor")
	}
}

// checkUnit checks that a unit is stored, encoded or plain, with all its siblings.
func (c *checker) checkUnit(u Unit, known map[string]bool) {
	if c.isUnit[u.Path] {
		for _, n := range encoder.ArrayNames() {
			known[u.Path+"."+n] = true
		}
		if t, ok := c.tensors[u.Path+"."+encoder.NameSignMantissa]; ok && t.NElems() != u.NElems() {
			c.add(u.Path, "sign_mantissa has another number of weights than the source")
		}
		if t, ok := c.tensors[u.Path+"."+encoder.NameSplitPositions]; ok &&
			t.NElems() != int64(len(u.Attrs)-1) {
			c.add(u.Path, "split_positions does not fit the number of attributes")
		}
	} else if _, ok := c.tensors[u.Attrs[0].Name]; ok {
		c.checkPlain(u.Attrs, known)
	} else {
		c.add(u.Path, "neither encoded nor plain")
	}
	c.checkPlain(u.Siblings, known)
}

// checkPlain checks that tensors are stored as the source has them.
func (c *checker) checkPlain(want []Tensor, known map[string]bool) {
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
