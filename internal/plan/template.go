package plan

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/python"
)

// settleDict makes the dict of this model, by its catalog entry or by the rule for unknown models.
// If a unit would have more weights than DF11 can hold, all blocks are split. A dict of the caller
// stays as it is.
func (d *draft) settleDict(ctx context.Context) error {
	if d.opt.PatternDict != nil {
		return nil
	}
	form := d.formDict
	if d.entry == nil {
		form = d.deriveDict
	}
	dict, err := form(ctx)
	if err == nil && d.inv.largestUnit(ctx, dict) > maxElems {
		d.plan.Split = true
		dict, err = form(ctx)
	}
	d.plan.PatternDict = dict
	return err
}

// formDict takes tied embeddings out of the dict of the entry and expands it if it is a template.
// The tied embedding stays in BF16, the head is not stored (docs/format.md §15).
func (d *draft) formDict(ctx context.Context) (PatternDict, error) {
	dict := slices.Clone(d.entry.PatternDict)
	if tied := d.entry.Tied; tied != nil && d.plan.TiedEmbeddings {
		dict = slices.DeleteFunc(dict, func(p Pattern) bool {
			return PatternDict{p}.matches(tied.Head) || PatternDict{p}.matches(tied.Embedding)
		})
	}
	if !d.entry.Template && !d.plan.Split {
		return dict, nil
	}
	var out PatternDict
	for _, pat := range dict {
		patterns, err := d.expandPattern(ctx, pat)
		if err != nil {
			return nil, err
		}
		out = append(out, patterns...)
	}
	return out, nil
}

// expandPattern turns a pattern of a template into patterns of a dict: it drops the attributes of a
// block that have no fitting tensor and lists the experts that are present; blocks with the same
// list share one pattern. A pattern whose list is empty stands for single modules and stays as it
// is.
func (d *draft) expandPattern(ctx context.Context, pat Pattern) ([]Pattern, error) {
	if len(pat.Attrs) == 0 {
		return []Pattern{pat}, nil
	}
	modules, err := d.inv.matching(ctx, pat.Regex)
	if err != nil {
		return nil, err
	}
	if err := d.checkBlocks(pat, modules); err != nil {
		return nil, err
	}
	groups := d.groupBlocks(pat, modules)
	if len(groups.list) == 0 {
		return nil, d.refuseOtherTypes(pat, modules)
	}
	return d.blockPatterns(ctx, pat, groups)
}

// blockPatterns writes the patterns of groups of blocks, in whose regex \d+ stands for all numbers,
// and takes the blocks apart if the model is to be split.
func (d *draft) blockPatterns(ctx context.Context, pat Pattern,
	groups blockGroups) ([]Pattern, error) {
	if d.plan.Split {
		groups = d.splitBlocks(pat, groups)
	}
	whole, err := d.inv.matching(ctx, pat.Regex)
	if err != nil {
		return nil, err
	}
	out := make([]Pattern, len(groups.list))
	for i, g := range groups.list {
		block := pat.Regex
		if !slices.Equal(g.modules, whole) {
			block = strings.Replace(pat.Regex, `\d+`, python.Numbers(g.indices), 1)
			if modules, err := d.inv.matching(ctx, block); err != nil || !slices.Equal(modules,
				g.modules) {
				return nil, refuse("name the modules to compress with --pattern-dict",
					"the blocks of %q differ in a way that the catalog cannot express", block)
			}
		}
		out[i] = Pattern{Regex: block + g.below, Attrs: g.attrs}
	}
	return out, nil
}

// refuseOtherTypes refuses a pattern whose blocks are there, but with weights of another type.
func (d *draft) refuseOtherTypes(pat Pattern, modules []string) error {
	for _, m := range modules {
		for _, a := range pat.Attrs {
			t, ok := d.inv.weight(m, a)
			if ok && len(t.Shape) == 2 && !d.opt.convertible(t.DType) {
				return d.inv.refuseDType(t)
			}
		}
	}
	return nil
}

// blockGroup is the blocks that have the same attributes.
type blockGroup struct {
	below   string // regex of modules inside the blocks; "" where the blocks themselves are units
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

// groupBlocks groups the blocks of a pattern.
func (d *draft) groupBlocks(pat Pattern, modules []string) (groups blockGroups) {
	for _, m := range modules {
		if attrs := d.presentAttrs(m, pat.Attrs); len(attrs) > 0 && !d.cfg.isExtraLayer(m) &&
			!d.entry.keeps(m) {
			groups.add("", attrs, lastSplit(m).index, m)
		}
	}
	return groups
}

// presentAttrs lists the attributes of a block that can be compressed; it takes those with {e}
// expert by expert.
func (d *draft) presentAttrs(module string, attrs []string) []string {
	var out []string
	add := func(attr string) {
		if t, ok := d.inv.weight(module, attr); ok && d.opt.compressible(t) &&
			!d.entry.keeps(module+"."+attr) {
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
		for _, e := range d.inv.experts(module, attrs[i]) {
			for _, a := range attrs[i:run] {
				add(strings.ReplaceAll(a, "{e}", strconv.Itoa(e)))
			}
		}
		i = run
	}
	return out
}

// largestUnit returns the number of weights of the largest unit that a dict would make.
func (inv *inventory) largestUnit(ctx context.Context, dict PatternDict) int64 {
	var most int64
	for _, pat := range dict {
		// a pattern that cannot be compiled is refused when units are formed
		modules, _ := inv.matching(ctx, pat.Regex)
		for _, m := range modules {
			most = max(most, inv.nWeights(m, pat.Attrs))
		}
	}
	return most
}

// nWeights returns the number of weights of a unit.
func (inv *inventory) nWeights(module string, attrs []string) (n int64) {
	if len(attrs) == 0 {
		attrs = []string{""}
	}
	for _, a := range attrs {
		if t, ok := inv.weight(module, a); ok {
			n += t.NElems()
		}
	}
	return n
}
