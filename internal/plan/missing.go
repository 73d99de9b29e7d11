package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
)

// checkStacks looks for blocks that a stack lacks. The model class would build them, and the loader
// would leave them uninitialized. checkStacks refuses the source if a catalog entry says how the
// stack is numbered, and warns otherwise.
func (f *former) checkStacks(p *Plan) error {
	inUnits := map[string]bool{} // paths of units, and of modules that hold units
	for _, u := range p.Units {
		for path := u.Path; path != "" && !inUnits[path]; path = catalog.Parent(path) {
			inUnits[path] = true
		}
	}
	seen := map[string]bool{"": true}
	for _, u := range p.Units {
		stack := catalog.LastSplit(u.Path).Stack
		if seen[stack] || len(p.PatternDict[u.Pattern].Attrs) == 0 {
			continue
		}
		seen[stack] = true
		missing, why := f.missingBlocks(stack, inUnits)
		if len(missing) == 0 {
			continue
		}
		if f.entry != nil {
			return refuse(incompleteHint, "the source holds no tensor of %s, but %s",
				human.List(missing), why)
		}
		p.warn("the source holds no tensor of %s, but %s", human.List(missing), why)
	}
	return nil
}

// missingBlocks lists the blocks of a stack that have no tensor, and says why they should exist. It
// checks only the main stack and stacks of nothing but units, because a container of different
// modules may have numbers without weights.
func (f *former) missingBlocks(stack string,
	inUnits map[string]bool) (missing []string, why string) {
	there := f.inv.numbered[stack]
	block := func(n int) string { return stack + "." + strconv.Itoa(n) }
	isPlain := func(n int) bool { return !inUnits[block(n)] }
	last := there[len(there)-1]
	why = fmt.Sprintf("there is %s", block(last))
	if slices.Contains(catalog.MainStacks, stack) {
		if n := f.layers(); n > last+1 {
			last, why = n-1, fmt.Sprintf("config.json counts %d layers", n)
		}
	} else if len(there) < 2 || slices.ContainsFunc(there, isPlain) {
		return nil, ""
	}
	for i := range last + 1 {
		if _, ok := slices.BinarySearch(there, i); !ok {
			missing = append(missing, block(i))
		}
		// a single block with the number 2^31 must not take memory for all others
		if len(missing) > manyUnits {
			break
		}
	}
	return missing, why
}

// layers returns how many layers the config of a transformers model counts, or -1. Classes that
// build two modules for each layer count the modules under one of the two keys, and the layers
// under the other.
func (f *former) layers() int {
	if f.survey.Layout != catalog.Transformers {
		return -1
	}
	n, other := f.cfg.Number("num_hidden_layers"), f.cfg.Number("num_layers")
	if other > 0 {
		return min(n, other)
	}
	return n
}
