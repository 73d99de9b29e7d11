package plan

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// settle makes the dict of this model by the catalog entry, or by the rule for unknown models. If a
// unit would have more weights than DF11 can hold, it splits all blocks. It leaves the caller's dict
// as it is.
func (f *former) settle(ctx context.Context) (dict catalog.PatternDict, err error) {
	if f.opt.PatternDict != nil {
		return f.opt.PatternDict, nil
	}
	form := f.form
	if f.entry == nil {
		form = f.derive
	}
	for _, f.split = range []bool{false, true} {
		dict, err = form(ctx)
		if err != nil || f.largestUnit(ctx, dict) <= maxElems {
			break
		}
	}
	return dict, err
}

// largestUnit returns the number of weights of the largest unit that a dict would make.
func (f *former) largestUnit(ctx context.Context, dict catalog.PatternDict) (most int64) {
	for _, pat := range dict {
		// a pattern that cannot be compiled is refused when units are formed
		modules, _ := pat.Matching(ctx, f.inv.modules)
		for _, m := range modules {
			most = max(most, f.inv.nWeights(m, pat.Attrs))
		}
	}
	return most
}

// form takes tied embeddings out of the entry's dict, adds the entry's towers, and expands the dict
// if it's a template. The tied embedding stays BF16, and the head isn't stored (docs/format.md
// §15).
func (f *former) form(ctx context.Context) (catalog.PatternDict, error) {
	dict := slices.Clone(f.dict)
	if tied := f.entry.Tied; tied != nil && f.tied {
		dict = slices.DeleteFunc(dict, func(p catalog.Pattern) bool {
			one := catalog.PatternDict{p}
			return one.Matches(tied.Head) || one.Matches(tied.Embedding)
		})
	}
	for _, pat := range f.entry.Towers {
		if f.holdsAll(ctx, pat) {
			dict = append(dict, pat)
		}
	}
	if !f.entry.Template && !f.split {
		return dict, nil
	}
	var out catalog.PatternDict
	for _, pat := range dict {
		patterns, err := f.expand(ctx, pat)
		if err != nil {
			return nil, err
		}
		out = append(out, patterns...)
	}
	return out, nil
}

// holdsAll reports whether a pattern has modules, and all their weights can be compressed.
func (f *former) holdsAll(ctx context.Context, pat catalog.Pattern) bool {
	// a pattern that cannot be compiled is refused when units are formed
	modules, _ := pat.Matching(ctx, f.inv.modules)
	return len(modules) > 0 && !slices.ContainsFunc(modules, func(m string) bool {
		return slices.ContainsFunc(pat.Attrs,
			func(attr string) bool { return !f.inv.fits(catalog.WeightName(m, attr)) })
	})
}

// expand turns a pattern of a template into patterns of a dict. It drops the attributes for which a
// block has no fitting tensor, and lists the experts that exist. Blocks with the same list share a
// pattern. A pattern with an empty list stands for single modules and stays as it is. expand
// refuses a pattern if its blocks exist, but with weights of another type.
func (f *former) expand(ctx context.Context, pat catalog.Pattern) ([]catalog.Pattern, error) {
	if len(pat.Attrs) == 0 {
		return []catalog.Pattern{pat}, nil
	}
	modules, err := pat.Matching(ctx, f.inv.modules)
	if err != nil {
		return nil, err
	}
	if err := f.checkBlocks(pat, modules); err != nil {
		return nil, err
	}
	var groups blockGroups
	for _, m := range modules {
		if attrs := f.presentAttrs(m, pat.Attrs); len(attrs) > 0 && f.isUnit(m) {
			groups.add("", attrs, catalog.LastSplit(m).Index, m)
		}
	}
	if len(groups.list) > 0 {
		return f.blockPatterns(ctx, pat, groups)
	}
	for _, m := range modules {
		for _, a := range pat.Attrs {
			if t, ok := f.inv.weight(m, a); ok && len(t.Shape) == 2 && !f.inv.isConvertible(t) {
				return nil, refuseDType(t)
			}
		}
	}
	return nil, nil
}

// presentAttrs lists the attributes of a block that can be compressed. It takes those with {e}
// expert by expert.
func (f *former) presentAttrs(module string, attrs []string) []string {
	var out []string
	add := func(attr string) {
		if f.inv.fits(catalog.WeightName(module, attr)) && !f.entry.Keeps(module+"."+attr) {
			out = append(out, attr)
		}
	}
	for i := 0; i < len(attrs); {
		if !strings.Contains(attrs[i], "{e}") {
			add(attrs[i])
			i++
			continue
		}
		run := i
		for run < len(attrs) && strings.Contains(attrs[run], "{e}") {
			run++
		}
		for _, e := range f.inv.experts(module, attrs[i]) {
			for _, a := range attrs[i:run] {
				add(expert(a, e))
			}
		}
		i = run
	}
	return out
}

// expert returns an attribute of one expert.
func expert(attr string, e int) string { return strings.ReplaceAll(attr, "{e}", strconv.Itoa(e)) }

// checkBlocks refuses a block without an attribute that other blocks of the pattern have, unless
// the catalog calls the attribute optional. It also refuses a weight of another type than in other
// blocks. An attribute that no block has belongs to a variant of the class.
func (f *former) checkBlocks(pat catalog.Pattern, modules []string) error {
	isNone := func(m string) bool { return !f.isUnit(m) }
	blocks := slices.DeleteFunc(slices.Clone(modules), isNone)
	for _, attr := range pat.Attrs {
		wanted := f.wantedWeights(blocks, attr)
		if !slices.ContainsFunc(wanted, f.inv.fits) {
			continue
		}
		for _, name := range wanted {
			if err := f.checkWanted(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// wantedWeights lists the weights of an attribute that the blocks must have: one for each block, or
// one for each expert up to the last that exists or that the config counts. A block may lack an
// attribute that the catalog calls optional.
func (f *former) wantedWeights(blocks []string, attr string) []string {
	optional := slices.Contains(f.entry.OptionalAttrs, attr)
	var names []string
	for _, b := range blocks {
		if !strings.Contains(attr, "{e}") {
			if name := catalog.WeightName(b, attr); !optional || f.inv.holds(name) {
				names = append(names, name)
			}
			continue
		}
		there, total := f.inv.experts(b, attr), max(1, f.cfg.Experts())
		if n := len(there); n > 0 {
			total = max(total, there[n-1]+1)
		} else if optional {
			continue
		}
		for e := range min(total, len(there)+1) { // if any is missing, one of these is
			names = append(names, catalog.WeightName(b, expert(attr, e)))
		}
	}
	return names
}

// fits reports whether a tensor exists and can become a weight of a unit.
func (inv *inventory) fits(name string) bool {
	t, ok := inv.get(name)
	return ok && inv.isCompressible(t)
}

// checkWanted refuses a weight that is missing, or that has another type or number of dimensions
// than in other blocks.
func (f *former) checkWanted(name string) error {
	t, ok := f.inv.get(name)
	switch {
	case f.inv.fits(name), f.entry.Keeps(catalog.Parent(name)):
		return nil
	case !ok:
		return refuse(incompleteHint,
			"the source has no tensor %s, although blocks or experts like it have one", name)
	case len(t.Shape) != 2:
		return refuse(incompleteHint, "%s has %d dimensions, in other blocks it has 2", name,
			len(t.Shape))
	}
	return refuseDType(t)
}
