package plan

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
)

// deriveDict makes a dict only from headers and config, for classes that the catalog doesn't know.
// docs/models.md lists what headers can't show.
func deriveDict(ctx context.Context, r *reading, m *recognition, c *checkpoint,
	fused fusedExperts) (*dictionary, error) {
	found := r.cfg.Stacks(linearModules(r, c.inv))
	if len(found) == 0 {
		return nil, refuseUnknown(c.inv)
	}
	stacks := outerUnits(r, m, c)
	for _, path := range slices.SortedFunc(maps.Keys(found), human.CompareNames) {
		s := stack{pattern: catalog.Pattern{Regex: regexp.QuoteMeta(path) + `\.\d+`}}
		for _, i := range slices.Sorted(maps.Keys(found[path])) {
			block := path + "." + strconv.Itoa(i)
			s.groups.add("", slices.Concat(found[path][i], fused[block]), i, block)
		}
		stacks = append(stacks, s)
	}
	d := &dictionary{}
	var err error
	d.patterns, d.split, err = writePatterns(ctx, stacks, c.inv, &r.facts, fused)
	return d, err
}

// linearModules lists the modules whose weights look like those of an nn.Linear.
func linearModules(r *reading, inv *inventory) (out []string) {
	experts := int64(r.cfg.Experts())
	for _, t := range inv.tensors {
		module, ok := strings.CutSuffix(t.Name, ".weight")
		if !ok || len(t.Shape) != 2 || !inv.isConvertible(t) {
			continue
		}
		rows, columns := t.Shape[0], t.Shape[1] // a router has a row for each expert
		if rows > 1 && columns > 0 && rows != experts && !catalog.IsTable(module) &&
			r.cantFill(inv, outerBlock(module), module) == "" {
			out = append(out, module)
		}
	}
	return out
}

// outerBlock returns the outermost block that a module lies in, or else the module.
func outerBlock(module string) string {
	if splits := catalog.Splits(module); len(splits) > 0 {
		return splits[0].Block()
	}
	return module
}

// outerUnits returns the patterns of the units outside the blocks: the head and the token embedding
// of an untied model.
func outerUnits(r *reading, m *recognition, c *checkpoint) (singles []stack) {
	pair, ok := guessPair(m.names, c.inv)
	if !ok || c.tied || r.facts.Bare != "" && !r.cfg.HasHead() {
		return nil
	}
	for _, name := range pair {
		module := catalog.Parent(name)
		if _, err := c.inv.unitWeight(module, ""); err != nil {
			return nil
		}
		if r.cantFill(c.inv, module, module) == "" {
			singles = append(singles, stack{single: true, pattern: catalog.Pattern{
				Regex: regexp.QuoteMeta(module), Attrs: []string{}}})
		}
	}
	return singles
}
