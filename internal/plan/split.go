package plan

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/python"
)

// blockPatterns writes the patterns of groups of blocks. In pat's regex, \d+ stands for all their
// numbers. It takes blocks apart if they have fused experts, and all of them if the model has to be
// split.
func (f *former) blockPatterns(ctx context.Context, pat catalog.Pattern,
	groups blockGroups) ([]catalog.Pattern, error) {
	groups = f.splitBlocks(pat, groups)
	whole, err := pat.Matching(ctx, f.inv.modules)
	if err != nil {
		return nil, err
	}
	out := make([]catalog.Pattern, len(groups.list))
	for i, g := range groups.list {
		block := pat.Regex
		if !slices.Equal(g.modules, whole) {
			block = strings.Replace(pat.Regex, `\d+`, python.Numbers(g.indices), 1)
			one := catalog.Pattern{Regex: block}
			if modules, err := one.Matching(ctx, f.inv.modules); err != nil ||
				!slices.Equal(modules,
					g.modules) {
				return nil, refuse(hint.NoExpression,
					"the blocks of %q differ in a way that the catalog cannot express", block)
			}
		}
		out[i] = catalog.Pattern{Regex: block + g.below, Attrs: g.attrs}
	}
	return out, nil
}

// splitBlocks replaces blocks by the largest modules inside them that can be units, in the order in
// which the pattern lists them.
func (f *former) splitBlocks(pat catalog.Pattern, blocks blockGroups) (split blockGroups) {
	first := map[string]string{} // regex of modules inside a block → path of their first weight
	for _, g := range blocks.list {
		if !f.Split && !f.isIndirect(g.modules[0], g.attrs) {
			for i, module := range g.modules {
				split.add("", g.attrs, g.indices[i], module)
			}
			continue
		}
		for i, module := range g.modules {
			// the parts of a block; parts that one regex can list share a path
			var merged blockGroups
			for _, p := range f.parts(module, "", g.attrs) {
				path := p.path
				if _, ok := catalog.Number(catalog.Leaf(path)); ok || len(p.attrs) == 0 {
					path = catalog.Parent(path) + "."
				}
				merged.add(path, p.attrs, 0, p.path)
			}
			for _, m := range merged.list {
				below := `\.` + f.pathRegex(module, m.modules)
				split.add(below, m.attrs, g.indices[i], module)
				first[below] = catalog.Numberless(catalog.WeightName(m.modules[0],
					strings.Join(m.attrs[:min(1, len(m.attrs))], "")))
			}
		}
	}
	place := func(g blockGroup) int {
		i := slices.IndexFunc(pat.Attrs,
			func(a string) bool {
				return catalog.WeightName(strings.ReplaceAll(a, "{e}", "#"),
					"") == first[g.below]
			})
		if i < 0 && g.below != "" {
			i = len(pat.Attrs) // fused experts, which no pattern of the catalog lists
		}
		return i
	}
	for _, g := range split.list {
		slices.SortFunc(g.modules, human.CompareNames)
	}
	slices.SortStableFunc(split.list,
		func(a, b blockGroup) int { return cmp.Compare(place(a), place(b)) })
	return split
}

// A part is a module inside a block that becomes a unit. Without attributes it's a single Linear or
// Embedding.
type part struct {
	path  string
	attrs []string
}

// childPath matches the start of an attribute: a module, and the numbers after it, because a list
// of modules is never called.
var childPath = regexp.MustCompile(`^[^.]+(\.\d+\b)*`)

// parts takes apart the module at a path of a block, until its parts are small enough for DF11. A
// weight that the class reads outside of its part stays BF16.
func (f *former) parts(block, path string, attrs []string) (out []part) {
	var children blockGroups
	for _, a := range attrs {
		child := childPath.FindString(a)
		children.add(child, nil, 0, strings.TrimPrefix(a[len(child):], "."))
	}
	for _, c := range children.list {
		p := part{strings.TrimPrefix(path+"."+c.below, "."), c.modules}
		module := block + "." + p.path
		if c.modules[0] == "" {
			p.attrs = nil
		}
		switch n := f.inv.nWeights(module, p.attrs); {
		case p.attrs == nil && n > maxElems && f.inv.fused(module, ""):
			t, _ := f.inv.attribute(module, "")
			for _, slice := range slicesOf(t) {
				out = append(out, part{strings.TrimPrefix(slice, block+"."), nil})
			}
			continue
		case p.attrs != nil && (n > maxElems || f.isIndirect(module, p.attrs)):
			out = append(out, f.parts(block, p.path, p.attrs)...)
			continue
		}
		isRead := func(attr string) bool { return f.facts.ReadsOutside(module, module+"."+attr) }
		if p.attrs = slices.DeleteFunc(p.attrs, isRead); len(p.attrs) > 0 || c.modules[0] == "" &&
			!f.facts.ReadsOutside(module, module) {
			out = append(out, p)
		}
	}
	return out
}

// pathRegex returns a regex for paths of modules of a block that differ only in their last
// component.
func (f *former) pathRegex(block string, paths []string) string {
	in := catalog.Parent(paths[0])
	var names []string
	var numbers []int
	for _, p := range paths {
		names = append(names, catalog.Leaf(p))
		if n, ok := catalog.Number(catalog.Leaf(p)); ok {
			numbers = append(numbers, n)
		}
	}
	last := strings.Join(names, "|")
	switch {
	case len(numbers) == len(names) && slices.Equal(numbers,
		f.inv.numbered[strings.TrimSuffix(block+"."+in, ".")]):
		last = `\d+`
	case len(numbers) == len(names):
		last = python.Numbers(numbers)
	case len(names) > 1:
		last = "(" + last + ")"
	}
	return strings.TrimPrefix(strings.ReplaceAll(in, ".", `\.`)+`\.`+last, `\.`)
}
