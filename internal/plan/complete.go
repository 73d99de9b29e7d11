package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
)

// incompleteHint goes with every refusal of a model that lacks tensors which its class has.
const incompleteHint = "fetch the source again and compare its size; a model that is meant to be so takes --pattern-dict"

// checkStacks looks for blocks that a stack lacks: the model class would build them, and the loader
// would leave them uninitialized. It refuses where a catalog entry vouches for how the stack is
// numbered, and warns elsewhere.
func (d *draft) checkStacks() error {
	inUnits := map[string]bool{} // paths of units, and of modules that hold units
	for _, u := range d.plan.Units {
		for path := u.Path; path != "" && !inUnits[path]; path = parent(path) {
			inUnits[path] = true
		}
	}
	seen := map[string]bool{"": true}
	for _, u := range d.plan.Units {
		stack := lastSplit(u.Path).stack
		if seen[stack] || len(d.plan.PatternDict[u.Pattern].Attrs) == 0 {
			continue
		}
		seen[stack] = true
		missing, why := d.missingBlocks(stack, inUnits)
		if len(missing) == 0 {
			continue
		}
		if d.entry != nil {
			return refuse(incompleteHint, "the source holds no tensor of %s, but %s",
				human.List(missing), why)
		}
		d.plan.warn("the source holds no tensor of %s, but %s", human.List(missing), why)
	}
	return nil
}

// missingBlocks lists the blocks of a stack that have no tensor, and says why they should exist. In
// a container of different modules some numbers have no weights, so only the main stack and stacks
// of nothing but units are judged.
func (d *draft) missingBlocks(stack string,
	inUnits map[string]bool) (missing []string, why string) {
	there := d.inv.children(stack)
	block := func(n int) string { return stack + "." + strconv.Itoa(n) }
	isPlain := func(n int) bool { return !inUnits[block(n)] }
	last := there[len(there)-1]
	why = fmt.Sprintf("there is %s", block(last))
	if slices.Contains(mainStacks, stack) {
		if n := d.layers(); n > last+1 {
			last, why = n-1, fmt.Sprintf("config.json counts %d layers", n)
		}
	} else if len(there) < 2 || slices.ContainsFunc(there, isPlain) {
		return nil, ""
	}
	for i := range last + 1 {
		if _, ok := slices.BinarySearch(there, i); !ok {
			missing = append(missing, block(i))
		}
		// a stack whose only block has the number 2^31 must not take memory for all others
		if len(missing) > manyUnits {
			break
		}
	}
	return missing, why
}

// layers returns how many layers the config of a transformers model counts; -1 if it does not say.
// Classes that build two modules for each layer count the modules under one of the two keys and the
// layers under the other.
func (d *draft) layers() int {
	if d.survey.Layout != Transformers {
		return -1
	}
	n, other := d.cfg.number("num_hidden_layers"), d.cfg.number("num_layers")
	if other > 0 {
		return min(n, other)
	}
	return n
}

// checkBlocks refuses a block that lacks an attribute which other blocks of the pattern have,
// unless the catalog calls it optional, and a weight of another type than in other blocks. An
// attribute that no block has belongs to a variant of the class.
func (d *draft) checkBlocks(pat Pattern, modules []string) error {
	blocks := slices.DeleteFunc(slices.Clone(modules),
		func(m string) bool { return d.cfg.isExtraLayer(m) || d.entry.keeps(m) })
	for _, attr := range pat.Attrs {
		wanted := d.wantedWeights(blocks, attr)
		if !slices.ContainsFunc(wanted, d.fits) {
			continue
		}
		for _, name := range wanted {
			if err := d.checkWanted(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// wantedWeights lists the weights of an attribute that the blocks must have: one for each block, or
// one for each expert up to the last that is there or that the config counts. A block may lack an
// attribute that the catalog calls optional.
func (d *draft) wantedWeights(blocks []string, attr string) []string {
	optional := slices.Contains(d.entry.OptionalAttrs, attr)
	var names []string
	for _, b := range blocks {
		if !strings.Contains(attr, "{e}") {
			if name := weightName(b, attr); !optional || d.inv.holds(name) {
				names = append(names, name)
			}
			continue
		}
		there, total := d.inv.experts(b, attr), max(1, d.cfg.experts())
		if n := len(there); n > 0 {
			total = max(total, there[n-1]+1)
		} else if optional {
			continue
		}
		for e := range min(total, len(there)+1) { // if any is missing, one of these is
			names = append(names, weightName(b, strings.ReplaceAll(attr, "{e}", strconv.Itoa(e))))
		}
	}
	return names
}

func (d *draft) fits(name string) bool {
	t, ok := d.inv.get(name)
	return ok && d.opt.compressible(t)
}

// checkWanted refuses a weight that is missing, or that has another type or form than in other
// blocks.
func (d *draft) checkWanted(name string) error {
	t, ok := d.inv.get(name)
	switch {
	case d.fits(name), d.entry.keeps(parent(name)):
		return nil
	case !ok:
		return refuse(incompleteHint,
			"the source has no tensor %s, although blocks or experts like it have one", name)
	case len(t.Shape) != 2:
		return refuse(incompleteHint, "%s has %d dimensions, in other blocks it has 2", name,
			len(t.Shape))
	}
	return d.inv.refuseDType(t)
}
