package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// incompleteHint goes with every refusal of a model that lacks tensors which its class has.
const incompleteHint = "fetch the source again and compare its size; a model that is meant to be so takes --pattern-dict"

// checkStacks looks for blocks that a stack lacks: numbers left out, and layers that the config counts. The model class
// would build them and the loader leave them uninitialised. A catalogue entry vouches for how the stack is numbered;
// without one the plan only warns.
func (p *planner) checkStacks() error {
	for _, stack := range p.stacks() {
		missing, why := p.missingBlocks(stack)
		if len(missing) == 0 {
			continue
		}
		if p.entry != nil {
			return refuse(ReasonWeights, incompleteHint, "the source holds no tensor of %s, but %s", sample(missing), why)
		}
		p.warn(WarnMissing, missing, "the source holds no tensor of %s, but %s", sample(missing), why)
	}
	return nil
}

// stacks lists the paths before the last number of the units that are blocks, in the plan's order.
func (p *planner) stacks() []string {
	var out []string
	for _, u := range p.plan.Units {
		parts := splitsOf(u.Path + ".x")
		if len(p.plan.PatternDict[u.Pattern].Attrs) == 0 || len(parts) == 0 {
			continue
		}
		if stack := parts[len(parts)-1].stack; !slices.Contains(out, stack) {
			out = append(out, stack)
		}
	}
	return out
}

// missingBlocks lists the blocks between the first and the last of a stack that have no tensor, and says why they should.
// A container of various modules can have numbers without weights, so only the main stack and those of units alone count.
func (p *planner) missingBlocks(stack string) (missing []string, why string) {
	there := p.inv.children(stack)
	last := there[len(there)-1]
	why = fmt.Sprintf("there is %s.%d", stack, last)
	if mainStack.MatchString(stackRegex(stack, nil)) {
		if n := p.layers(); n > last+1 {
			last, why = n-1, fmt.Sprintf("config.json counts %d layers", n)
		}
	} else if len(there) < 2 || !p.allUnits(stack, there) {
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
func (p *planner) allUnits(stack string, numbers []int) bool {
	blocks := map[string]bool{}
	for _, u := range p.plan.Units {
		for path := u.Path; path != ""; path = parent(path) {
			blocks[path] = true
		}
	}
	return !slices.ContainsFunc(numbers, func(n int) bool { return !blocks[stack+"."+strconv.Itoa(n)] })
}

// layers returns how many layers the config of a transformers model counts; -1 if it does not say. Of classes with two
// modules a layer, one of the two keys counts the modules.
func (p *planner) layers() int {
	if p.survey.Layout != Transformers {
		return -1
	}
	n, other := p.cfg.number("num_hidden_layers"), p.cfg.number("num_layers")
	if other > 0 {
		return min(n, other)
	}
	return n
}

// checkTemplate refuses a block that lacks an attribute which other blocks of the pattern have, unless the catalogue says
// that some blocks lack it, and one with a weight of another type than theirs. An attribute that no block has belongs to
// a variant of the class.
func (p *planner) checkTemplate(pat Pattern, modules []string) error {
	index := firstIndex(pat.Regex)
	blocks := slices.DeleteFunc(slices.Clone(modules), func(m string) bool {
		return p.isExtraLayer(pat.Regex, index(m)) || p.keeps(m)
	})
	for _, attr := range pat.Attrs {
		wanted := p.wantedWeights(blocks, attr)
		if !slices.ContainsFunc(wanted, p.fitsWeight) {
			continue
		}
		for _, name := range wanted {
			if err := p.checkWanted(name); err != nil {
				return err
			}
		}
	}
	return p.checkExperts(pat, blocks)
}

// wantedWeights lists the weights that an attribute stands for in blocks that may not lack it: of every expert that is
// there, and of every block, or those that have it if the catalogue calls it optional.
func (p *planner) wantedWeights(blocks []string, attr string) []string {
	optional := slices.Contains(p.entry.OptionalAttrs, attr)
	var names []string
	for _, b := range blocks {
		if strings.Contains(attr, "{e}") {
			experts := p.experts(b, attr)
			if len(experts) == 0 && !optional {
				experts = []int{0}
			}
			for _, e := range experts {
				names = append(names, b+"."+strings.ReplaceAll(attr, "{e}", strconv.Itoa(e))+".weight")
			}
		} else if name := b + "." + attr + ".weight"; !optional || p.inv.holds(name) {
			names = append(names, name)
		}
	}
	return names
}

// fitsWeight says whether a tensor can be compressed.
func (p *planner) fitsWeight(name string) bool {
	t, ok := p.inv.get(name)
	return ok && len(t.Shape) == 2 && p.convertible(t.DType)
}

// checkWanted refuses a weight that is missing, or of another type or form than its like in other blocks.
func (p *planner) checkWanted(name string) error {
	t, ok := p.inv.get(name)
	switch {
	case p.fitsWeight(name), p.keeps(parent(name)):
		return nil
	case !ok:
		return refuse(ReasonWeights, incompleteHint, "the source has no tensor %s, which other blocks have", name)
	case len(t.Shape) != 2:
		return refuse(ReasonWeights, incompleteHint, "%s has %d dimensions, in other blocks it has 2", name, len(t.Shape))
	}
	return p.refuseDType(t)
}

// checkExperts refuses blocks with experts that lack some of them, by their numbers and by the config.
func (p *planner) checkExperts(pat Pattern, blocks []string) error {
	i := slices.IndexFunc(pat.Attrs, func(a string) bool { return strings.Contains(a, "{e}") })
	if i < 0 {
		return nil
	}
	before, _, _ := strings.Cut(pat.Attrs[i], ".{e}")
	for _, b := range blocks {
		there := p.experts(b, pat.Attrs[i])
		if len(there) == 0 {
			continue
		}
		for e := range max(there[len(there)-1]+1, p.cfg.experts()) {
			if e >= len(there) || there[e] != e {
				return refuse(ReasonWeights, incompleteHint, "the source holds no tensor of %s.%s.%d, an expert of %s", b, before, e,
					count(max(there[len(there)-1]+1, p.cfg.experts()), "expert"))
			}
		}
	}
	return nil
}
