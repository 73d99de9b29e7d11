package plan

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
)

// derive makes the dict from headers and config alone, for classes that the catalog doesn't know.
// docs/models.md lists what headers can't show.
func (f *former) derive(ctx context.Context) (catalog.PatternDict, error) {
	stacks := f.cfg.Stacks(f.candidates())
	if len(stacks) == 0 {
		return nil, f.refuseUnknown()
	}
	dict := f.outerUnits()
	for _, stack := range slices.SortedFunc(maps.Keys(stacks), human.CompareNames) {
		var groups blockGroups
		for _, i := range slices.Sorted(maps.Keys(stacks[stack])) {
			block := stack + "." + strconv.Itoa(i)
			groups.add("", f.withFused(block, stacks[stack][i]), i, block)
		}
		patterns, err := f.blockPatterns(ctx,
			catalog.Pattern{Regex: strings.ReplaceAll(stack, ".", `\.`) + `\.\d+`}, groups)
		if err != nil {
			return nil, err
		}
		dict = append(dict, patterns...)
	}
	return dict, nil
}

// refuseUnknown says why nothing could be derived.
func (f *former) refuseUnknown() error {
	for _, t := range f.inv.tensors {
		if len(t.Shape) == 2 && !f.inv.isConvertible(t) && strings.HasSuffix(t.Name, ".weight") {
			return refuseDType(t)
		}
	}
	return refuse(hint.Unknown,
		"the catalog doesn't know this model, and its names show no stack of blocks to compress")
}

// candidates lists the modules whose weights look like those of an nn.Linear.
func (f *former) candidates() (out []string) {
	experts := int64(f.cfg.Experts())
	for _, t := range f.inv.tensors {
		module, ok := strings.CutSuffix(t.Name, ".weight")
		if !ok || len(t.Shape) != 2 || !f.inv.isConvertible(t) {
			continue
		}
		rows, columns := t.Shape[0], t.Shape[1] // a router has a row for each expert
		if rows > 1 && columns > 0 && rows != experts && !catalog.IsTable(module) &&
			f.cantFill(f.inv.parents, outerBlock(module), module) == "" {
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

// outerUnits returns the units outside the blocks: the head and the token embedding of an untied
// model.
func (f *former) outerUnits() (dict catalog.PatternDict) {
	pair, ok := guessPair(f.names, f.inv)
	if !ok || f.TiedEmbeddings || f.facts.Bare != "" && !f.cfg.HasHead() {
		return nil
	}
	for _, name := range pair {
		module := catalog.Parent(name)
		if _, err := f.inv.unitWeight(module, ""); err != nil {
			return nil
		}
		if f.cantFill(f.inv.parents, module, module) == "" {
			dict = append(dict, catalog.Pattern{Regex: strings.ReplaceAll(module, ".", `\.`),
				Attrs: []string{}})
		}
	}
	return dict
}
