package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
)

// checkBlocks refuses a source of a known class that lacks a block of a stack. The model class would
// build the block, and the loader would leave it uninitialized. If the dict is given, the class may
// need no such block, so it only warns.
func checkBlocks(r *reading, m *recognition, units []Unit, patterns catalog.PatternDict,
	inv *inventory, notes *Notes) error {
	block, why := missingBlock(r.cfg, units, patterns, inv)
	switch {
	case block == "":
	case m.entry != nil:
		return refuse(hint.Incomplete, "the source holds no tensor of %s, but %s", block, why)
	case r.opt.PatternDict != nil && !r.opt.Finished:
		notes.warn("the source holds no tensor of %s, but %s", block, why)
	}
	return nil
}

// missingBlock returns the first block that a stack lacks, and says why there should be one, or "".
func missingBlock(cfg *catalog.Config, units []Unit, patterns catalog.PatternDict,
	inv *inventory) (block, why string) {
	seen := map[string]bool{"": true}
	for _, u := range units {
		stack := catalog.LastSplit(u.Path).Stack
		if seen[stack] || len(patterns[u.Pattern].Attrs) == 0 {
			continue
		}
		seen[stack] = true
		numbers := inv.numbered[stack]
		last := numbers[len(numbers)-1]
		why := fmt.Sprintf("there is %s.%d", stack, last)
		if n := countLayers(cfg); n > last+1 && slices.Contains(catalog.MainStacks, stack) {
			last, why = n-1, fmt.Sprintf("config.json counts %d layers", n)
		} else if len(numbers) == 1 { // a module of a list, as in t_embedder.1
			continue
		}
		for i := range last + 1 {
			if _, ok := slices.BinarySearch(numbers, i); !ok {
				return stack + "." + strconv.Itoa(i), why
			}
		}
	}
	return "", ""
}

// countLayers returns how many layers the config counts, or -1. Classes that build two modules for
// each layer count the modules under one of the two keys, and the layers under the other.
func countLayers(cfg *catalog.Config) int {
	n, other := cfg.Number("num_hidden_layers"), cfg.Number("num_layers")
	if other > 0 {
		return min(n, other)
	}
	return n
}
