package plan

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// derive makes a pattern dict from names, shapes and types alone, for classes that the catalogue does not know. What
// it cannot see is listed in docs/models.md; the plan is labelled "derived".
func (p *planner) derive() error {
	blocks := p.findStacks(p.candidates())
	dict := p.deriveOuter()
	for _, stack := range sortedKeys(blocks) {
		dict = append(dict, stackPatterns(stack, blocks[stack])...)
	}
	if len(blocks) == 0 {
		return p.refuseUnderivable()
	}
	p.plan.PatternDict, p.plan.Provenance, p.plan.Derived = dict, "derived", true
	p.plan.Loader = p.deriveLoader()
	p.warn(WarnDerived, nil, "the catalogue does not know this model: the pattern dict was derived from tensor names and "+
		"shapes, nobody has loaded its output yet")
	return nil
}

// deriveLoader guesses how the model is loaded from its class name.
func (p *planner) deriveLoader() Loader {
	if len(p.cfg.Architectures) == 0 {
		return Loader{Via: "bfloat16_model=", Class: p.cfg.ClassName}
	}
	class := p.cfg.Architectures[0]
	if strings.HasSuffix(class, "ForCausalLM") && !p.cfg.holds("auto_map") {
		return Loader{Via: "AutoModelForCausalLM", Transformers: "<5"}
	}
	return Loader{Via: "bfloat16_model=", Class: class}
}

// refuseUnderivable explains why nothing could be derived.
func (p *planner) refuseUnderivable() error {
	for _, t := range p.inv.tensors {
		if len(t.Shape) == 2 && !p.convertible(t.DType) && strings.HasSuffix(t.Name, ".weight") {
			return p.refuseDType(t)
		}
	}
	return refuse(ReasonUnknown, "name its units with --pattern-dict",
		"the catalogue does not know this model, and its names show no stack of blocks to derive units from")
}

// candidate is a weight that may be compressed, seen from its block.
type candidate struct {
	stack string // path before the number
	index int    // the number of the block
	attr  string // path inside the block
}

// candidates lists the weights of which headers suggest that they are nn.Linear.
func (p *planner) candidates() []string {
	experts := p.cfg.experts()
	var out []string
	for _, t := range p.inv.tensors {
		module, ok := strings.CutSuffix(t.Name, ".weight")
		if !ok || len(t.Shape) != 2 || !p.convertible(t.DType) {
			continue
		}
		if rows := t.Shape[0]; rows <= 1 || rows == int64(experts) || t.Shape[1] == 0 || isTable(module) {
			continue
		}
		out = append(out, module)
	}
	return out
}

// tableComponent recognises path components of embeddings and other tables that are no Linear.
var tableComponent = regexp.MustCompile(
	`^(embed.*|.*embedding|.*embeddings|wte|wpe|pos_.*|token_type.*|relative_attention_bias|patch_embed.*|time_embed.*|` +
		`.*_table|codebook|mtp|router|conv.*)$`)

// isTable says whether any component of the path names a table, a router or a layer for multi-token prediction.
func isTable(module string) bool {
	return slices.ContainsFunc(strings.Split(module, "."), tableComponent.MatchString)
}

// findStacks sorts candidates into stacks of blocks: stack path → block index → attributes. A stack is the outermost
// number in a path with at least two blocks, half or more of which share an attribute.
func (p *planner) findStacks(modules []string) map[string]map[int][]string {
	splits := map[string][]candidate{} // module → its possible splits, outermost first
	share := map[string]map[string]int{}
	members := map[string]map[int]bool{}
	for _, m := range modules {
		splits[m] = splitsOf(m)
		for _, c := range splits[m] {
			if share[c.stack] == nil {
				share[c.stack], members[c.stack] = map[string]int{}, map[int]bool{}
			}
			share[c.stack][c.attr]++
			members[c.stack][c.index] = true
		}
	}
	blocks := map[string]map[int][]string{}
	for _, m := range modules {
		for _, c := range splits[m] {
			if !isStack(members[c.stack], share[c.stack]) {
				continue
			}
			if !p.isExtraLayer(stackRegex(c.stack, nil), c.index) {
				addBlock(blocks, c)
			}
			break
		}
	}
	return blocks
}

// addBlock notes one attribute of one block.
func addBlock(blocks map[string]map[int][]string, c candidate) {
	if blocks[c.stack] == nil {
		blocks[c.stack] = map[int][]string{}
	}
	blocks[c.stack][c.index] = append(blocks[c.stack][c.index], c.attr)
}

// splitsOf returns every way to read a path as stack, number and attribute, outermost first.
func splitsOf(module string) []candidate {
	parts := strings.Split(module, ".")
	var out []candidate
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || digits(part) != len(part) || i == 0 || i == len(parts)-1 {
			continue
		}
		out = append(out, candidate{strings.Join(parts[:i], "."), n, strings.Join(parts[i+1:], ".")})
	}
	return out
}

// isStack says whether numbered children are blocks of a stack.
func isStack(members map[int]bool, share map[string]int) bool {
	most := 0
	for _, n := range share {
		most = max(most, n)
	}
	return len(members) >= 2 && 2*most >= len(members)
}

// stackPatterns returns the patterns of one stack: one for each list of attributes that occurs.
func stackPatterns(stack string, blocks map[int][]string) []Pattern {
	var order []string
	groups := map[string][]int{}
	attrs := map[string][]string{}
	for _, i := range sortedKeys(blocks) {
		list := slices.Clone(blocks[i])
		slices.SortFunc(list, compareAttrs)
		key := strings.Join(list, "\n")
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key], attrs[key] = append(groups[key], i), list
	}
	out := make([]Pattern, len(order))
	for i, key := range order {
		indices := groups[key]
		if len(order) == 1 {
			indices = nil
		}
		out[i] = Pattern{Regex: stackRegex(stack, indices), Attrs: attrs[key]}
	}
	return out
}

// stackRegex matches the blocks of a stack: the given ones, or all for nil.
func stackRegex(stack string, indices []int) string {
	number := `\d+`
	if indices != nil {
		number = indexRegex(indices)
	}
	return strings.ReplaceAll(stack, ".", `\.`) + `\.` + number
}

// deriveOuter returns the units outside the blocks: head and token embedding of an untied model.
func (p *planner) deriveOuter() PatternDict {
	pair, ok := p.guessTie()
	if !ok || p.isTied([]tie{pair}) {
		return nil
	}
	var d PatternDict
	for _, name := range []string{pair.drop, pair.keep} {
		t, ok := p.inv.get(name)
		if !ok || !p.convertible(t.DType) {
			return nil
		}
		d = append(d, Pattern{Regex: strings.ReplaceAll(parent(name), ".", `\.`), Attrs: []string{}})
	}
	return d
}
