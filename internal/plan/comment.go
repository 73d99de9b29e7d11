package plan

import (
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// commenter notes what the user should know about a plan that is otherwise finished.
type commenter struct{ *draft }

// comment adds warnings, differences and readers.
func (c commenter) comment() error {
	casts := c.warnDTypes()
	c.warnLowGain()
	if c.entry != nil && c.entry.Unchecked {
		c.plan.warn("the catalog's names for this model were not compared with its class: %s",
			c.entry.Verification)
	}
	if c.foreign != "" {
		c.plan.warn("the tensor names are not the module paths of %s, which the config states: "+
			"that class cannot load the output", c.foreign)
	}
	if n := len(c.plan.Units); n > manyUnits {
		c.plan.warn("%d modules to compress: the official loader lists the whole model once per stored tensor and "+
			"may take hours", n)
	}
	c.noteOfficial(casts)
	c.findReaders()
	return nil
}

// manyUnits is where the official loader gets slow: it calls state_dict() for each of the six tensors of each unit.
const manyUnits = 4000

// warnDTypes warns of plain tensors in another floating-point type than the model's and counts them.
func (c commenter) warnDTypes() (casts int) {
	model := c.cfg.modelDType()
	byType := map[safetensors.DType]int{}
	var order []safetensors.DType
	for _, t := range c.plan.plainTensors() {
		if t.DType == model || !isFloat(t.DType) {
			continue
		}
		if byType[t.DType] == 0 {
			order = append(order, t.DType)
		}
		byType[t.DType]++
		casts++
	}
	for _, d := range order {
		c.plan.warn("%s in a %s model: kept as stored, a loader may convert them",
			count(byType[d], fmt.Sprintf("plain %s tensor", d)), model)
	}
	return casts
}

// warnLowGain warns when most of the model passes through unchanged.
func (c commenter) warnLowGain() {
	units, plain := c.plan.UnitBytes(), c.plan.PlainBytes()
	if units < plain {
		c.plan.warn("only %d%% of the bytes are in modules that are compressed; the rest stays as it is",
			100*units/(units+plain))
	}
}

// noteOfficial lists where the official compressor would have written something else. casts is the number of plain tensors that
// it would cast.
func (c commenter) noteOfficial(casts int) {
	if c.plan.Split {
		c.plan.differ("layers are split into smaller modules, because a layer exceeds 2^31-1 weights")
	}
	if n := c.extraLayerTensors(); n > 0 {
		c.plan.differ("%s of layers that the model class does not build are kept; the official route drops them", count(n, "tensor"))
	}
	if casts > 0 {
		c.plan.differ("%s keep the source's type; the official route casts them to the model's", count(casts, "plain tensor"))
	}
}

// extraLayerTensors counts the tensors of layers behind those that the config counts.
func (c commenter) extraLayerTensors() int {
	n := 0
	isExtra := func(s candidate) bool { return c.cfg.isExtraLayer(stackRegex(s.stack, nil), s.index) }
	for _, t := range c.plan.Remainder {
		if slices.ContainsFunc(splitsOf(parent(t.Name)), isExtra) {
			n++
		}
	}
	return n
}
