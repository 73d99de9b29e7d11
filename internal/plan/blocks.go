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

// A stack is what a pattern stands for: blocks, whose numbers are \d+ in its regex, or single
// modules.
type stack struct {
	pattern catalog.Pattern
	groups  blockGroups
	single  bool // the pattern stands for single modules, and stays as it is
}

// A blockGroup is the blocks that have the same attributes.
type blockGroup struct {
	below   string // regex of modules inside the blocks; "" if the blocks themselves are units
	attrs   []string
	indices []int
	modules []string
}

// blockGroups groups blocks by their attributes, in the order of their first block.
type blockGroups struct {
	list  []blockGroup
	place map[string]int // below and attributes → index in list
}

func (g *blockGroups) add(below string, attrs []string, index int, module string) {
	if g.place == nil {
		g.place = map[string]int{}
	}
	key := below + "\n" + strings.Join(attrs, "\n")
	i, ok := g.place[key]
	if !ok {
		i = len(g.list)
		g.place[key] = i
		g.list = append(g.list, blockGroup{below: below, attrs: attrs})
	}
	g.list[i].indices = append(g.list[i].indices, index)
	g.list[i].modules = append(g.list[i].modules, module)
}

// writePatterns writes the patterns of stacks: one for each group of blocks. If DF11 couldn't hold
// a unit, it takes all blocks apart, and split is true.
func writePatterns(ctx context.Context, stacks []stack, inv *inventory, class *catalog.Facts,
	fused fusedExperts) (patterns catalog.PatternDict, split bool, err error) {
	w := patternWriter{inv: inv, class: class, fused: fused}
	if patterns, err = w.write(ctx, stacks); err != nil {
		return nil, false, err
	}
	if ok, err := fits(ctx, patterns, inv); ok || err != nil {
		return patterns, false, err
	}
	w.split = true
	patterns, err = w.write(ctx, stacks)
	return patterns, true, err
}

// A patternWriter writes patterns of blocks. It takes blocks apart if they can't hold their fused
// experts. With split, it takes all apart.
type patternWriter struct {
	inv   *inventory
	class *catalog.Facts
	fused fusedExperts
	split bool
}

func (w *patternWriter) write(ctx context.Context, stacks []stack) (all catalog.PatternDict, err error) {
	for _, s := range stacks {
		if s.single {
			all = append(all, s.pattern)
			continue
		}
		patterns, err := w.writeStack(ctx, s)
		if err != nil {
			return nil, err
		}
		all = append(all, patterns...)
	}
	return all, nil
}

// writeStack writes the patterns of the groups of a stack's blocks.
func (w *patternWriter) writeStack(ctx context.Context, s stack) ([]catalog.Pattern, error) {
	groups := w.splitBlocks(s.pattern, s.groups)
	whole, err := s.pattern.Matching(ctx, w.inv.modules)
	if err != nil {
		return nil, err
	}
	out := make([]catalog.Pattern, len(groups.list))
	for i, g := range groups.list {
		block := s.pattern.Regex
		if !slices.Equal(g.modules, whole) {
			block = strings.Replace(s.pattern.Regex, `\d+`, python.Numbers(g.indices), 1)
			one := catalog.Pattern{Regex: block}
			modules, err := one.Matching(ctx, w.inv.modules)
			if err != nil || !slices.Equal(modules, g.modules) {
				return nil, refuse(hint.Unknown,
					"the blocks of %q differ in a way that the catalog cannot express", block)
			}
		}
		out[i] = catalog.Pattern{Regex: block + g.below, Attrs: g.attrs}
	}
	return out, nil
}

// splitBlocks replaces blocks by the largest modules inside them that can be units, in the order in
// which the pattern lists them.
func (w *patternWriter) splitBlocks(pat catalog.Pattern, blocks blockGroups) (split blockGroups) {
	first := map[string]string{} // regex of modules inside a block → path of their first weight
	for _, g := range blocks.list {
		if !w.split && !w.fused.isIndirect(g.modules[0], g.attrs) {
			for i, module := range g.modules {
				split.add("", g.attrs, g.indices[i], module)
			}
			continue
		}
		for i, module := range g.modules {
			// the parts of a block; parts that one regex can list share a path
			var merged blockGroups
			for _, p := range w.parts(module, "", g.attrs) {
				path := p.path
				if _, ok := catalog.Number(catalog.Leaf(path)); ok || len(p.attrs) == 0 {
					path = catalog.Parent(path) + "."
				}
				merged.add(path, p.attrs, 0, p.path)
			}
			for _, m := range merged.list {
				below := `\.` + w.pathRegex(module, m.modules)
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
func (w *patternWriter) parts(block, path string, attrs []string) (out []part) {
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
		switch n := w.inv.nWeights(module, p.attrs); {
		case p.attrs == nil && n > maxElems && w.inv.fused(module, ""):
			t, _ := w.inv.attribute(module, "")
			for _, slice := range slicesOf(t) {
				out = append(out, part{strings.TrimPrefix(slice, block+"."), nil})
			}
			continue
		case p.attrs != nil && (n > maxElems || w.fused.isIndirect(module, p.attrs)):
			out = append(out, w.parts(block, p.path, p.attrs)...)
			continue
		}
		isRead := func(attr string) bool { return w.class.ReadsOutside(module, module+"."+attr) }
		if p.attrs = slices.DeleteFunc(p.attrs, isRead); len(p.attrs) > 0 || c.modules[0] == "" &&
			!w.class.ReadsOutside(module, module) {
			out = append(out, p)
		}
	}
	return out
}

// pathRegex returns a regex for paths of modules of a block that differ only in their last
// component.
func (w *patternWriter) pathRegex(block string, paths []string) string {
	in := catalog.Parent(paths[0])
	var names []string
	var numbers []int
	for _, p := range paths {
		names = append(names, regexp.QuoteMeta(catalog.Leaf(p)))
		if n, ok := catalog.Number(catalog.Leaf(p)); ok {
			numbers = append(numbers, n)
		}
	}
	last := strings.Join(names, "|")
	switch {
	case len(numbers) == len(names) && slices.Equal(numbers,
		w.inv.numbered[strings.TrimSuffix(block+"."+in, ".")]):
		last = `\d+`
	case len(numbers) == len(names):
		last = python.Numbers(numbers)
	case len(names) > 1:
		last = "(" + last + ")"
	}
	return strings.TrimPrefix(regexp.QuoteMeta(in)+`\.`+last, `\.`)
}
