package plan

import (
	"fmt"
	"strings"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// maxElems is the largest unit that the loader's 32-bit counters can hold (docs/format.md §9).
const maxElems = 1<<31 - 1

// Reasons for Unit.Unholdable that headers show.
const (
	tooLarge = "too_large"
	isEmpty  = "empty"
)

// weight returns the tensor of one attribute, checked: it exists, is 2-D, and is BF16 or, on request, F32.
func (p *planner) weight(u *Unit, name, attr string) (Tensor, error) {
	t, ok := p.inv.get(name)
	if !ok {
		return Tensor{}, p.refuseMissing(u, name)
	}
	if len(t.Shape) != 2 {
		return Tensor{}, refuse(ReasonPattern, "only weights of Linear and Embedding modules can be compressed; leave it out",
			"%s has %d dimensions, not 2", name, len(t.Shape))
	}
	t.Attr = attr
	switch {
	case t.DType == safetensors.BF16:
	case t.DType == safetensors.F32 && p.opt.ExactF32:
		t.ExactF32 = true
	default:
		return Tensor{}, p.refuseDType(t)
	}
	return t, nil
}

// refuseMissing explains why a unit has no such tensor.
func (p *planner) refuseMissing(u *Unit, name string) error {
	pattern := p.plan.PatternDict[u.Pattern]
	if len(pattern.Attrs) == 0 {
		return refuse(ReasonPattern, "list the attributes of the block in the pattern dict",
			"pattern %q has an empty list, but module %s has no weight of its own", pattern.Regex, u.Path)
	}
	return refuse(ReasonPattern, "remove the attribute, or give blocks with other attributes a pattern of their own",
		"unit %s has no tensor %s", u.Path, name)
}

// dtypeHints says what to use instead for weights that are not BF16.
var dtypeHints = map[safetensors.DType]string{
	"F32": "if the values are rounded BF16, --exact-f32 converts them with proof; otherwise keep F32, " +
		"or cast to BF16 yourself knowing that it loses bits",
	"F16": "DF11 holds BF16 only and a cast loses bits; keep FP16, or use ZipNN, which is lossless for it",
}

// refuseDType explains why a weight is not BF16, counting how many of the same kind there are.
func (p *planner) refuseDType(t Tensor) error {
	hint := dtypeHints[t.DType]
	switch {
	case strings.HasPrefix(string(t.DType), "F8"):
		hint = fp8Hint
	case !isFloat(t.DType), strings.HasPrefix(string(t.DType), "F4"), strings.HasPrefix(string(t.DType), "F6"):
		hint = otherQuantHint
	}
	var n int
	var elems int64
	for _, other := range p.inv.tensors {
		if other.DType == t.DType {
			n++
			elems += other.NElems()
		}
	}
	return refuse(ReasonDType, hint, "%s is %s, not BF16 (%s, %d values in all)", t.Name, t.DType,
		count(n, string(t.DType)+" tensor"), elems)
}

// markUnholdable notes the units that headers show DF11 cannot hold, and refuses a model of nothing else.
func (p *planner) markUnholdable() error {
	var names []string
	for i := range p.plan.Units {
		u := &p.plan.Units[i]
		switch n := u.NElems(); {
		case n == 0:
			u.Unholdable = isEmpty
		case n > maxElems || n < 0:
			u.Unholdable = tooLarge
		default:
			continue
		}
		names = append(names, u.Path)
	}
	if len(names) == len(p.plan.Units) {
		return refuse(ReasonUnholdable, "split the units with a pattern dict of their sub-modules",
			"DF11 can hold none of the %s: %s", count(len(names), "unit"), sample(names))
	}
	if len(names) > 0 {
		p.warn(WarnUnit, names, "%s stay in BF16, because DF11 cannot hold them", count(len(names), "unit"))
	}
	return nil
}

// warnDTypes tells of plain tensors in another floating-point type than the model's; they are kept as they are.
func (p *planner) warnDTypes() {
	model := p.modelDType()
	byType := map[safetensors.DType][]string{}
	var order []safetensors.DType
	for _, t := range p.plainTensors() {
		if t.DType == model || !isFloat(t.DType) {
			continue
		}
		if byType[t.DType] == nil {
			order = append(order, t.DType)
		}
		byType[t.DType] = append(byType[t.DType], t.Name)
	}
	for _, d := range order {
		p.warn(WarnDType, byType[d], "%s in a %s model: kept as stored, a loader may convert them",
			count(len(byType[d]), fmt.Sprintf("plain %s tensor", d)), model)
	}
}

// modelDType is the type that the config states, else BF16.
func (p *planner) modelDType() safetensors.DType {
	switch p.cfg.DType {
	case "float32":
		return safetensors.F32
	case "float16":
		return "F16"
	default:
		return safetensors.BF16
	}
}

// isFloat says whether a type is a floating-point one.
func isFloat(d safetensors.DType) bool {
	return strings.HasPrefix(string(d), "F") || d == safetensors.BF16
}

// plainTensors lists all tensors that are copied unchanged: siblings by unit, then the remainder.
func (p *planner) plainTensors() []Tensor {
	var out []Tensor
	for _, u := range p.plan.Units {
		out = append(out, u.Siblings...)
	}
	return append(out, p.plan.Remainder...)
}
