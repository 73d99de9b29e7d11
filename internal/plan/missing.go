package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
)

// checkStacks refuses a source of a known class that lacks a block of a stack. The model class would
// build the block, and the loader would leave it uninitialized.
func checkStacks(cfg *catalog.Config, units []Unit, patterns catalog.PatternDict, inv *inventory) error {
	seen := map[string]bool{"": true}
	for _, u := range units {
		stack := catalog.LastSplit(u.Path).Stack
		if seen[stack] || len(patterns[u.Pattern].Attrs) == 0 {
			continue
		}
		seen[stack] = true
		there := inv.numbered[stack]
		last := there[len(there)-1]
		why := fmt.Sprintf("there is %s.%d", stack, last)
		if n := countLayers(cfg); n > last+1 && slices.Contains(catalog.MainStacks, stack) {
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

// countLayers returns how many layers the config counts, or -1. Classes that build two modules for each
// layer count the modules under one of the two keys, and the layers under the other.
func countLayers(cfg *catalog.Config) int {
	n, other := cfg.Number("num_hidden_layers"), cfg.Number("num_layers")
	if other > 0 {
		return min(n, other)
	}
	return n
}
