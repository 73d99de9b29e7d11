package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// comment notes what the user should know about a plan: warnings, differences, and readers.
func (c *choice) comment() {
	if key := statedQuant(c.cfg); key != "" {
		c.warn("%s says that the weights are quantized (%s), but none is: remove that member", c.survey.Config, key)
	}
	if c.names.foreign != "" {
		c.warn(
			"the tensor names aren't the module paths of %s, which the config states: that class can't load the output", c.names.foreign)
	}
	if c.Split {
		c.differ(
			"layers are split into smaller modules, because a layer exceeds 2^31-1 weights")
	}
	nExtra := 0
	for _, t := range c.Remainder {
		if c.cfg.IsExtraLayer(catalog.Parent(t.Name)) {
			nExtra++
		}
	}
	if nExtra > 0 {
		c.differ("%s of layers that the model class doesn't build are kept; the official route "+
			"drops them", count(nExtra, "tensor"))
	}
	c.noteCasts(c.cfg.ModelDType())
	c.findReaders()
	if c.Derived() && c.Readers[0].Loads != Loads {
		c.warn(
			"untested: the catalog doesn't know this model, and no one has loaded a model converted this way yet; " +
				"its list of compressed modules was derived from tensor names and shapes")
	}
}

// Stays says which large share of the model stays BF16, and what another repo could compress. It
// returns "" if there is neither.
func (p *Plan) Stays() string {
	return strings.Trim(p.PlainShares()+"; "+p.Twin, "; ")
}

// PlainShares says what makes up 10% or more of the model outside of units: "26% of the model is a
// tied embedding, which stays BF16".
func (p *Plan) PlainShares() string {
	var shares []string
	var tied, fused int64
	for _, t := range p.plainTensors() {
		if p.TiedEmbeddings && len(t.Shape) == 2 && slices.Contains(tableNames,
			catalog.Leaf(catalog.Parent(t.Name))) {
			tied += t.Length
		} else if t.IsFusedExperts() {
			fused += t.Length
		}
	}
	plain := p.PlainBytes()
	for _, part := range []struct {
		nBytes int64
		is     string
	}{
		{tied, "is a tied embedding, which stays BF16"},
		{fused, "is " + p.WhyFused()},
		{plain - tied - fused, "is in no module that is compressed"},
	} {
		if percent := 100 * part.nBytes / max(p.UnitBytes()+plain, 1); percent >= 10 {
			shares = append(shares, fmt.Sprintf("%d%% of the model %s", percent, part.is))
		}
	}
	return strings.Join(shares, ", and ")
}

// WhyFused says why fused experts stay BF16, if any do.
func (p *Plan) WhyFused() string {
	if p.readsFor == OfficialReader {
		return "fused experts, which dfloat11 can't hold"
	}
	return "fused experts that the pattern dict leaves out"
}

// noteCasts notes plain tensors in another floating-point type than the model's.
func (p *Plan) noteCasts(model safetensors.DType) {
	byType := map[safetensors.DType]int{}
	for _, t := range p.plainTensors() {
		if t.DType != model && isPlainFloat(t.DType) {
			byType[t.DType]++
		}
	}
	article := "a"
	if strings.HasPrefix(string(model), "F") {
		article = "an"
	}
	for _, dtype := range slices.Sorted(maps.Keys(byType)) {
		p.differ("%s in %s %s model: kept as stored; the official route and some loaders cast them",
			count(byType[dtype], fmt.Sprintf("plain %s tensor", dtype)), article, model)
	}
}
