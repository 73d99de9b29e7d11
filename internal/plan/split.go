package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/python"
)

// splitBlocks replaces blocks by the largest modules inside them that DF11 can hold, in the order
// in which the pattern lists them.
func (d *draft) splitBlocks(pat Pattern, blocks blockGroups) (split blockGroups) {
	first := map[string]string{} // regex of modules inside a block → path of their first weight
	for _, g := range blocks.list {
		for i, module := range g.modules {
			// the parts of a block, under one path those that a regex can list
			var merged blockGroups
			for _, p := range d.parts(module, "", g.attrs) {
				path := p.path
				if _, ok := number(leaf(path)); ok || len(p.attrs) == 0 {
					path = parent(path) + "."
				}
				merged.add(path, p.attrs, 0, p.path)
			}
			for _, m := range merged.list {
				below := `\.` + d.pathRegex(module, m.modules)
				split.add(below, m.attrs, g.indices[i], module)
				first[below] = numberless(weightName(m.modules[0],
					strings.Join(m.attrs[:min(1, len(m.attrs))], "")))
			}
		}
	}
	place := func(g blockGroup) int {
		return slices.IndexFunc(pat.Attrs,
			func(a string) bool {
				return weightName(strings.ReplaceAll(a, "{e}", "#"),
					"") == first[g.below]
			})
	}
	for _, g := range split.list {
		slices.SortFunc(g.modules, human.CompareNames)
	}
	slices.SortStableFunc(split.list,
		func(a, b blockGroup) int { return cmp.Compare(place(a), place(b)) })
	return split
}

// part is a module inside a block that becomes a unit; without attributes it is a single Linear or
// Embedding.
type part struct {
	path  string
	attrs []string
}

// childPath matches the start of an attribute: a module, with the numbers behind it, since nobody
// calls a list of modules.
var childPath = regexp.MustCompile(`^[^.]+(\.\d+\b)*`)

// parts takes the module at a path of a block apart, as far down as its parts are too large for
// DF11. A weight that the class reads outside of its part stays in BF16.
func (d *draft) parts(block, path string, attrs []string) (out []part) {
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
		} else if d.inv.nWeights(module, p.attrs) > maxElems {
			out = append(out, d.parts(block, p.path, p.attrs)...)
			continue
		}
		isRead := func(attr string) bool { return d.facts.readsOutside(module, module+"."+attr) }
		if p.attrs = slices.DeleteFunc(p.attrs, isRead); len(p.attrs) > 0 || c.modules[0] == "" &&
			!d.facts.readsOutside(module, module) {
			out = append(out, p)
		}
	}
	return out
}

// pathRegex matches the paths of modules of a block that differ in their last component only.
func (d *draft) pathRegex(block string, paths []string) string {
	in := parent(paths[0])
	var names []string
	var numbers []int
	for _, p := range paths {
		names = append(names, leaf(p))
		if n, ok := number(leaf(p)); ok {
			numbers = append(numbers, n)
		}
	}
	last := strings.Join(names, "|")
	switch {
	case len(numbers) == len(names) && slices.Equal(numbers,
		d.inv.children(strings.TrimSuffix(block+"."+in, "."))):
		last = `\d+`
	case len(numbers) == len(names):
		last = python.Numbers(numbers)
	case len(names) > 1:
		last = "(" + last + ")"
	}
	return strings.TrimPrefix(strings.ReplaceAll(in, ".", `\.`)+`\.`+last, `\.`)
}
