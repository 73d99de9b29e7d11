package plan

import (
	"slices"
	"strconv"
	"strings"
)

// denseIndices stands for the indices of the layers without experts in a split dict.
const denseIndices = "(DENSE_INDICES)"

// expander brings the dict of a catalog entry into its final form for one model.
type expander struct{ *draft }

// settle sets the plan's dict. A dict of the caller stays as it is, if it fits the tied embeddings.
func (x expander) settle() error {
	if x.entry == nil || x.opt.PatternDict != nil {
		return tieResolver(x).refuseHalfTied()
	}
	dict, err := x.form(x.entry.PatternDict)
	if err != nil {
		return err
	}
	if x.entry.Split != nil && x.largestUnit(dict) > maxElems {
		x.plan.Split = true
		if dict, err = x.form(x.entry.Split); err != nil {
			return err
		}
	}
	x.plan.PatternDict = dict
	return nil
}

// form applies to one of the entry's dicts what the model calls for: tied form, template. Tied embeddings
// leave the dict: the embedding stays once in BF16, the head is not stored (docs/format.md §15).
func (x expander) form(d PatternDict) (PatternDict, error) {
	d = d.clone()
	if tied := x.entry.Tied; tied != nil && x.plan.TiedEmbeddings {
		d = slices.DeleteFunc(d, func(p Pattern) bool {
			return PatternDict{p}.matches(tied.Head) || PatternDict{p}.matches(tied.Embedding)
		})
	}
	if !x.entry.Template && !x.plan.Split {
		return d, nil
	}
	var out PatternDict
	for _, pat := range d {
		pat.Regex = strings.Replace(pat.Regex, denseIndices, `\d+`, 1)
		patterns, err := x.expand(pat)
		if err != nil {
			return nil, err
		}
		out = append(out, patterns...)
	}
	return out, nil
}

// expand turns a pattern of a template into patterns of a dict: it drops the attributes of a block that have no fitting
// tensor and lists the experts that are present; blocks with the same list share one pattern. A pattern whose list is
// empty stands for single modules and stays as it is.
func (x expander) expand(pat Pattern) ([]Pattern, error) {
	if len(pat.Attrs) == 0 {
		return []Pattern{pat}, nil
	}
	modules, err := x.inv.matching(pat.Regex)
	if err != nil {
		return nil, err
	}
	if !x.plan.Split { // else the blocks were checked as a whole already
		if err := blockChecker(x).check(pat, modules); err != nil {
			return nil, err
		}
	}
	groups, complete := x.groupBlocks(pat, modules)
	if len(groups) == 0 {
		return nil, x.refuseOtherTypes(pat, modules)
	}
	if len(groups) == 1 && complete {
		return []Pattern{{Regex: pat.Regex, Attrs: groups[0].attrs}}, nil
	}
	out := make([]Pattern, len(groups))
	for i, g := range groups {
		out[i] = Pattern{Regex: strings.Replace(pat.Regex, `\d+`, indexRegex(g.indices), 1), Attrs: g.attrs}
		if modules, err := x.inv.matching(out[i].Regex); err != nil || !slices.Equal(modules, g.modules) {
			return nil, refuse(ReasonPattern, "name the modules to compress with --pattern-dict",
				"the blocks of %q differ in a way that the catalog cannot express", out[i].Regex)
		}
	}
	return out, nil
}

// refuseOtherTypes refuses a pattern whose blocks are there, but with weights of another type.
func (x expander) refuseOtherTypes(pat Pattern, modules []string) error {
	for _, m := range modules {
		for _, a := range pat.Attrs {
			t, ok := x.inv.weight(m, a)
			if ok && len(t.Shape) == 2 && !x.opt.convertible(t.DType) {
				return x.inv.refuseDType(t)
			}
		}
	}
	return nil
}

// blockGroup is the blocks that have the same attributes.
type blockGroup struct {
	attrs   []string
	indices []int
	modules []string
}

// blockGroups groups blocks by their attributes, in the order of their first block.
type blockGroups struct {
	list  []blockGroup
	place map[string]int // attributes → index in list
}

// add puts a block into the group of its attributes.
func (g *blockGroups) add(attrs []string, index int, module string) {
	if g.place == nil {
		g.place = map[string]int{}
	}
	key := strings.Join(attrs, "\n")
	i, ok := g.place[key]
	if !ok {
		i = len(g.list)
		g.place[key] = i
		g.list = append(g.list, blockGroup{attrs: attrs})
	}
	g.list[i].indices = append(g.list[i].indices, index)
	g.list[i].modules = append(g.list[i].modules, module)
}

// groupBlocks groups the blocks of a pattern. complete says whether every matched block is in a group.
func (x expander) groupBlocks(pat Pattern, modules []string) (groups []blockGroup, complete bool) {
	index := firstIndex(pat.Regex)
	var found blockGroups
	complete = true
	for _, m := range modules {
		n, attrs := index(m), x.presentAttrs(m, pat.Attrs)
		if len(attrs) == 0 || x.cfg.isExtraLayer(pat.Regex, n) || x.entry.keeps(m) {
			complete = false
			continue
		}
		found.add(attrs, n, m)
	}
	return found.list, complete
}

// firstIndex returns a function that reads the number which the regex's first \d+ matches in a module path, or -1.
func firstIndex(regex string) func(module string) int {
	re, err := compilePython(strings.Replace(regex, `\d+`, `(?P<index>\d+)`, 1))
	if err != nil || re.SubexpIndex("index") < 0 {
		return func(string) int { return -1 }
	}
	return func(module string) int {
		if m := re.FindStringSubmatch(module); m != nil {
			if n, ok := number(m[re.SubexpIndex("index")]); ok {
				return n
			}
		}
		return -1
	}
}

// presentAttrs lists the attributes of a block that can be compressed; it takes those with {e} expert by expert.
func (x expander) presentAttrs(module string, attrs []string) []string {
	var out []string
	add := func(attr string) {
		if t, ok := x.inv.weight(module, attr); ok && x.opt.compressible(t) && !x.entry.keeps(module+"."+attr) {
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
		for _, e := range x.inv.experts(module, attrs[i]) {
			for _, a := range attrs[i:run] {
				add(strings.ReplaceAll(a, "{e}", strconv.Itoa(e)))
			}
		}
		i = run
	}
	return out
}

// largestUnit returns the number of weights of the largest unit that a dict would make.
func (x expander) largestUnit(d PatternDict) int64 {
	var most int64
	for _, pat := range d {
		attrs := pat.Attrs
		if len(attrs) == 0 {
			attrs = []string{""}
		}
		modules, _ := x.inv.matching(pat.Regex) // a pattern that cannot be compiled is refused when units are formed
		for _, m := range modules {
			var n int64
			for _, a := range attrs {
				if t, ok := x.inv.weight(m, a); ok {
					n += t.NElems()
				}
			}
			most = max(most, n)
		}
	}
	return most
}
