package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
)

// checkStacks refuses a source that lacks a block of a stack, if a catalog entry says how the stack
// is numbered. The model class would build the block, and the loader would leave it uninitialized.
func (f *former) checkStacks() error {
	seen := map[string]bool{"": true}
	for _, u := range f.Units {
		stack := catalog.LastSplit(u.Path).Stack
		if f.entry == nil || seen[stack] || len(f.PatternDict[u.Pattern].Attrs) == 0 {
			continue
		}
		seen[stack] = true
		there := f.inv.numbered[stack]
		last := there[len(there)-1]
		why := fmt.Sprintf("there is %s.%d", stack, last)
		if n := f.layers(); n > last+1 && slices.Contains(catalog.MainStacks, stack) {
			last, why = n-1, fmt.Sprintf("config.json counts %d layers", n)
		} else if len(there) == 1 { // a module of a list, as in t_embedder.1
			continue
		}
		for i := range last + 1 {
			if _, ok := slices.BinarySearch(there, i); !ok {
				return refuse(hint.Incomplete, "the source holds no tensor of %s, but %s",
					stack+"."+strconv.Itoa(i), why)
			}
		}
	}
	return nil
}

// layers returns how many layers the config counts, or -1. Classes that build two modules for each
// layer count the modules under one of the two keys, and the layers under the other.
func (f *former) layers() int {
	n, other := f.cfg.Number("num_hidden_layers"), f.cfg.Number("num_layers")
	if other > 0 {
		return min(n, other)
	}
	return n
}
