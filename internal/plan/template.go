package plan

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// denseIndices stands for the indices of the layers without experts in a split dict.
const denseIndices = "(DENSE_INDICES)"

// settlePatterns brings the dict into its final form for this model.
func (p *planner) settlePatterns() error {
	if p.entry == nil || p.opt.PatternDict != nil {
		return p.refuseHalfTied()
	}
	dict, err := p.formDict(p.entry.PatternDict)
	if err != nil {
		return err
	}
	if p.entry.Split != nil && p.largestUnit(dict) > maxElems {
		p.plan.Split = true
		if dict, err = p.formDict(p.entry.Split); err != nil {
			return err
		}
	}
	p.plan.PatternDict = dict
	return nil
}

// formDict applies to one of the entry's dicts what the model calls for: vision units, tied form, template.
func (p *planner) formDict(d PatternDict) (PatternDict, error) {
	d = d.clone()
	if p.opt.Vision {
		d = append(d, p.entry.VisionUnits.clone()...)
	}
	d = p.withoutTied(d)
	if !p.entry.Template && !p.plan.Split {
		return d, nil
	}
	return p.expand(d)
}

// withoutTied takes head and embedding out of a catalogue dict when they are tied: the embedding stays once in BF16,
// the head is not stored (docs/format.md §15).
func (p *planner) withoutTied(d PatternDict) PatternDict {
	tied := p.entry.Tied
	if !p.plan.TiedEmbeddings || tied == nil {
		return d
	}
	return slices.DeleteFunc(d, func(pat Pattern) bool {
		re, err := compilePython(pat.Regex)
		return err == nil && (re.MatchString(tied.Head) || re.MatchString(tied.Embedding))
	})
}

// expand turns a template into a dict: per block it drops attributes without a fitting tensor and lists the experts
// that are present; blocks with the same list share one pattern.
func (p *planner) expand(d PatternDict) (PatternDict, error) {
	var out PatternDict
	for _, pat := range d {
		pat.Regex = strings.Replace(pat.Regex, denseIndices, `\d+`, 1)
		patterns, err := p.expandPattern(pat)
		if err != nil {
			return nil, err
		}
		out = append(out, patterns...)
	}
	return out, nil
}

// expandPattern expands one pattern. One whose list is empty stands for single modules and stays as it is.
func (p *planner) expandPattern(pat Pattern) ([]Pattern, error) {
	if len(pat.Attrs) == 0 {
		return []Pattern{pat}, nil
	}
	modules, err := p.matching(pat.Regex)
	if err != nil {
		return nil, err
	}
	if !p.plan.Split { // else the blocks were checked as a whole already
		if err := p.checkTemplate(pat, modules); err != nil {
			return nil, err
		}
	}
	groups, complete := p.groupBlocks(pat, modules)
	if len(groups) == 0 {
		return nil, p.refuseOtherTypes(pat, modules)
	}
	if len(groups) == 1 && complete {
		return []Pattern{{Regex: pat.Regex, Attrs: groups[0].attrs}}, nil
	}
	out := make([]Pattern, len(groups))
	for i, g := range groups {
		out[i] = Pattern{Regex: strings.Replace(pat.Regex, `\d+`, indexRegex(g.indices), 1), Attrs: g.attrs}
		if err := p.checkGroup(out[i].Regex, g.modules); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// refuseOtherTypes refuses a pattern whose blocks are there, but with weights of another type.
func (p *planner) refuseOtherTypes(pat Pattern, modules []string) error {
	for _, m := range modules {
		for _, a := range pat.Attrs {
			t, ok := p.inv.get(m + "." + a + ".weight")
			if ok && len(t.Shape) == 2 && !p.convertible(t.DType) {
				return p.refuseDType(t)
			}
		}
	}
	return nil
}

// matching returns the modules that a regex matches.
func (p *planner) matching(regex string) ([]string, error) {
	re, err := compilePython(regex)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range p.inv.allModules() {
		if re.MatchString(m) {
			out = append(out, m)
		}
	}
	return out, nil
}

// blockGroup is the blocks that have the same attributes.
type blockGroup struct {
	attrs   []string
	indices []int
	modules []string
}

// groupBlocks groups the blocks of a pattern by the attributes that they have, in the order of their first block.
// complete says whether every matched block is in a group.
func (p *planner) groupBlocks(pat Pattern, modules []string) (groups []blockGroup, complete bool) {
	index := firstIndex(pat.Regex)
	place := map[string]int{}
	complete = true
	for _, m := range modules {
		n, attrs := index(m), p.presentAttrs(m, pat.Attrs)
		if len(attrs) == 0 || p.isExtraLayer(pat.Regex, n) || p.keeps(m) {
			complete = false
			continue
		}
		key := strings.Join(attrs, "\n")
		i, ok := place[key]
		if !ok {
			i = len(groups)
			place[key] = i
			groups = append(groups, blockGroup{attrs: attrs})
		}
		groups[i].indices = append(groups[i].indices, n)
		groups[i].modules = append(groups[i].modules, m)
	}
	return groups, complete
}

// firstIndex returns a function that reads the number which the regex's first \d+ matches in a module path, or -1.
func firstIndex(regex string) func(module string) int {
	re, err := compilePython(strings.Replace(regex, `\d+`, `(?P<index>\d+)`, 1))
	if err != nil || re.SubexpIndex("index") < 0 {
		return func(string) int { return -1 }
	}
	return func(module string) int {
		m := re.FindStringSubmatch(module)
		if m == nil {
			return -1
		}
		n, err := strconv.Atoi(m[re.SubexpIndex("index")])
		if err != nil {
			return -1
		}
		return n
	}
}

// presentAttrs lists the attributes of a block that can be compressed; those with {e} once per expert, expert by
// expert.
func (p *planner) presentAttrs(module string, attrs []string) []string {
	var out []string
	for i := 0; i < len(attrs); {
		if !strings.Contains(attrs[i], "{e}") {
			out = p.appendPresent(out, module, attrs[i])
			i++
			continue
		}
		run := i
		for run < len(attrs) && strings.Contains(attrs[run], "{e}") {
			run++
		}
		for _, e := range p.experts(module, attrs[i]) {
			for _, a := range attrs[i:run] {
				out = p.appendPresent(out, module, strings.ReplaceAll(a, "{e}", strconv.Itoa(e)))
			}
		}
		i = run
	}
	return out
}

// appendPresent appends an attribute if it has a 2-D weight of a type that is converted.
func (p *planner) appendPresent(out []string, module, attr string) []string {
	t, ok := p.inv.get(module + "." + attr + ".weight")
	if !ok || len(t.Shape) != 2 || !p.convertible(t.DType) || p.keeps(module+"."+attr) {
		return out
	}
	return append(out, attr)
}

// convertible says whether weights of a type can become units.
func (p *planner) convertible(d safetensors.DType) bool {
	return d == safetensors.BF16 || d == safetensors.F32 && p.opt.ExactF32
}

// experts returns the numbers that follow the part of attr before {e}, in order.
func (p *planner) experts(module, attr string) []int {
	before, _, _ := strings.Cut(attr, ".{e}")
	return p.inv.children(module + "." + before)
}

// children returns the numbers that are direct children of a module, in order.
func (inv *inventory) children(module string) []int {
	if inv.numbered == nil {
		inv.numbered = map[string][]int{}
		for _, m := range inv.allModules() {
			last := m[strings.LastIndexByte(m, '.')+1:]
			if n, err := strconv.Atoi(last); err == nil && digits(last) == len(last) {
				inv.numbered[parent(m)] = append(inv.numbered[parent(m)], n)
			}
		}
	}
	return inv.numbered[module]
}

// mainStack recognises patterns of the language model's own layers.
var mainStack = regexp.MustCompile(`^(model|model\\?\.language_model|language_model\\?\.model|backbone)\\?\.layers\\?\.\\d\+`)

// isExtraLayer says whether a block lies behind the layers that the config counts: a layer for multi-token prediction,
// which the model class does not build.
func (p *planner) isExtraLayer(regex string, index int) bool {
	n := p.cfg.number("num_hidden_layers")
	return n > 0 && index >= n && mainStack.MatchString(regex)
}

// keeps says whether the catalogue leaves a module in BF16.
func (p *planner) keeps(module string) bool {
	return p.entry != nil && slices.ContainsFunc(p.entry.KeepBF16, func(glob string) bool { return globMatch(glob, module) })
}

// globMatch matches a path with a glob in which * stands for any characters.
func globMatch(glob, path string) bool {
	before, after, found := strings.Cut(glob, "*")
	if !found {
		return glob == path
	}
	rest, ok := strings.CutPrefix(path, before)
	for i := 0; ok && i <= len(rest); i++ {
		if globMatch(after, rest[i:]) {
			return true
		}
	}
	return false
}

// checkGroup makes sure that a pattern made for a group of blocks matches just these.
func (p *planner) checkGroup(regex string, want []string) error {
	got, err := p.matching(regex)
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return refuse(ReasonPattern, "name its units with --pattern-dict", "the blocks of %q differ in a way that the catalogue cannot express", regex)
	}
	return nil
}

// largestUnit returns the number of weights of the largest unit that a dict would make.
func (p *planner) largestUnit(d PatternDict) int64 {
	var most int64
	for _, pat := range d {
		modules, err := p.matching(pat.Regex)
		if err != nil {
			continue
		}
		for _, m := range modules {
			most = max(most, p.unitElems(m, pat.Attrs))
		}
	}
	return most
}

// unitElems counts the weights of one unit.
func (p *planner) unitElems(module string, attrs []string) int64 {
	if len(attrs) == 0 {
		t, _ := p.inv.get(module + ".weight")
		return elemsOf(t)
	}
	var n int64
	for _, a := range attrs {
		t, _ := p.inv.get(module + "." + a + ".weight")
		n += elemsOf(t)
	}
	return n
}

// elemsOf counts the elements of a tensor; the zero Tensor has none.
func elemsOf(t Tensor) int64 {
	if t.Name == "" {
		return 0
	}
	return t.NElems()
}
