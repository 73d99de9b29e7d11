package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// incompleteHint goes with every refusal of a model that lacks tensors which its class has.
const incompleteHint = "fetch the source again and compare its size; a model that is meant to be so takes --pattern-dict"

// stackChecker looks for blocks that a stack lacks: numbers left out, and layers that the config counts. The model class
// would build them and the loader leave them uninitialized.
type stackChecker struct {
	*draft
	inUnits map[string]bool // paths of units, and of modules that hold units
}

// check refuses missing blocks where a catalog entry vouches for how the stack is numbered, and else warns of them.
func (s stackChecker) check() error {
	s.inUnits = map[string]bool{}
	for _, u := range s.plan.Units {
		for path := u.Path; path != "" && !s.inUnits[path]; path = parent(path) {
			s.inUnits[path] = true
		}
	}
	for _, stack := range s.stacks() {
		missing, why := s.missingBlocks(stack)
		if len(missing) == 0 {
			continue
		}
		if s.entry != nil {
			return refuse(ReasonWeights, incompleteHint, "the source holds no tensor of %s, but %s", sample(missing), why)
		}
		s.plan.warn("the source holds no tensor of %s, but %s", sample(missing), why)
	}
	return nil
}

// stacks lists the paths before the last number of the units that are blocks, in the plan's order.
func (s stackChecker) stacks() []string {
	var out []string
	seen := map[string]bool{}
	for _, u := range s.plan.Units {
		parts := splitsOf(u.Path + ".x")
		if len(s.plan.PatternDict[u.Pattern].Attrs) == 0 || len(parts) == 0 {
			continue
		}
		if stack := parts[len(parts)-1].stack; !seen[stack] {
			seen[stack] = true
			out = append(out, stack)
		}
	}
	return out
}

// missingBlocks lists the blocks of a stack that have no tensor, and says why they should exist. In a container of
// different modules some numbers have no weights, so only the main stack and stacks of nothing but units are judged.
func (s stackChecker) missingBlocks(stack string) (missing []string, why string) {
	there := s.inv.children(stack)
	last := there[len(there)-1]
	why = fmt.Sprintf("there is %s.%d", stack, last)
	if mainStack.MatchString(stackRegex(stack, nil)) {
		if n := s.layers(); n > last+1 {
			last, why = n-1, fmt.Sprintf("config.json counts %d layers", n)
		}
	} else if len(there) < 2 || !s.allUnits(stack, there) {
		return nil, ""
	}
	for i := range last + 1 {
		if _, ok := slices.BinarySearch(there, i); !ok {
			missing = append(missing, stack+"."+strconv.Itoa(i))
		}
		if len(missing) > manyUnits { // numbers are data: a stack whose only block is 2^31 is no reason to allocate
			break
		}
	}
	return missing, why
}

// allUnits says whether each numbered child of a stack is a unit or holds one.
func (s stackChecker) allUnits(stack string, numbers []int) bool {
	return !slices.ContainsFunc(numbers, func(n int) bool { return !s.inUnits[stack+"."+strconv.Itoa(n)] })
}

// layers returns how many layers the config of a transformers model counts; -1 if it does not say. Classes that build two
// modules for each layer count the modules under one of the two keys and the layers under the other.
func (s stackChecker) layers() int {
	if s.survey.Layout != Transformers {
		return -1
	}
	n, other := s.cfg.number("num_hidden_layers"), s.cfg.number("num_layers")
	if other > 0 {
		return min(n, other)
	}
	return n
}

// blockChecker looks for weights that a block lacks although other blocks of the pattern have them.
type blockChecker struct{ *draft }

// check refuses a block that lacks an attribute which other blocks have, unless the catalog calls it optional, and a
// weight of another type than in other blocks. An attribute that no block has belongs to a variant of the class.
func (c blockChecker) check(pat Pattern, modules []string) error {
	index := firstIndex(pat.Regex)
	blocks := slices.DeleteFunc(slices.Clone(modules), func(m string) bool {
		return c.cfg.isExtraLayer(pat.Regex, index(m)) || c.entry.keeps(m)
	})
	for _, attr := range pat.Attrs {
		wanted := c.wantedWeights(blocks, attr)
		if !slices.ContainsFunc(wanted, c.fits) {
			continue
		}
		for _, name := range wanted {
			if err := c.checkWanted(name); err != nil {
				return err
			}
		}
	}
	return c.checkExperts(pat, blocks)
}

// wantedWeights lists the weights of an attribute that the blocks must have: one for every expert that is there, and
// one for every block. Blocks may lack an attribute that the catalog calls optional.
func (c blockChecker) wantedWeights(blocks []string, attr string) []string {
	optional := slices.Contains(c.entry.OptionalAttrs, attr)
	var names []string
	for _, b := range blocks {
		if strings.Contains(attr, "{e}") {
			experts := c.inv.experts(b, attr)
			if len(experts) == 0 && !optional {
				experts = []int{0}
			}
			for _, e := range experts {
				names = append(names, weightName(b, strings.ReplaceAll(attr, "{e}", strconv.Itoa(e))))
			}
		} else if name := weightName(b, attr); !optional || c.inv.holds(name) {
			names = append(names, name)
		}
	}
	return names
}

// fits says whether a tensor is there and can be compressed.
func (c blockChecker) fits(name string) bool {
	t, ok := c.inv.get(name)
	return ok && c.opt.compressible(t)
}

// checkWanted refuses a weight that is missing, or that has another type or form than in other blocks.
func (c blockChecker) checkWanted(name string) error {
	t, ok := c.inv.get(name)
	switch {
	case c.fits(name), c.entry.keeps(parent(name)):
		return nil
	case !ok:
		return refuse(ReasonWeights, incompleteHint, "the source has no tensor %s, which other blocks have", name)
	case len(t.Shape) != 2:
		return refuse(ReasonWeights, incompleteHint, "%s has %d dimensions, in other blocks it has 2", name, len(t.Shape))
	}
	return c.inv.refuseDType(t)
}

// checkExperts refuses blocks that lack some of their experts, by the experts' numbers and by the config.
func (c blockChecker) checkExperts(pat Pattern, blocks []string) error {
	i := slices.IndexFunc(pat.Attrs, func(a string) bool { return strings.Contains(a, "{e}") })
	if i < 0 {
		return nil
	}
	before, _, _ := strings.Cut(pat.Attrs[i], ".{e}")
	for _, b := range blocks {
		there := c.inv.experts(b, pat.Attrs[i])
		if len(there) == 0 {
			continue
		}
		total := max(there[len(there)-1]+1, c.cfg.experts())
		for e := range total {
			if e >= len(there) || there[e] != e {
				return refuse(ReasonWeights, incompleteHint, "the source holds no tensor of %s.%s.%d, an expert of %s", b, before, e,
					count(total, "expert"))
			}
		}
	}
	return nil
}
