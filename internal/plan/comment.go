package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// manyUnits is where the official loader gets slow: it calls state_dict() for each of the six
// tensors of each unit.
const manyUnits = 4000

// comment notes what the user should know about a plan that is otherwise finished: warnings,
// differences and readers.
func (p *Plan) comment(c *choice) {
	casts := p.warnDTypes(c.cfg.ModelDType())
	if c.entry != nil && c.entry.Unchecked {
		p.warn("the catalog's names for this model were not compared with its class: %s",
			c.entry.Verification)
	}
	if c.foreign != "" {
		p.warn(
			"the tensor names are not the module paths of %s, which the config states: that class cannot load the output", c.foreign)
	}
	if n := len(p.Units); n > manyUnits {
		p.warn(
			"%d modules to compress: the official loader lists the whole model once per stored tensor and may take hours", n)
	}
	if p.Split {
		p.differ(
			"layers are split into smaller modules, because a layer exceeds 2^31-1 weights")
	}
	if n := countExtra(p.Remainder, c.cfg); n > 0 {
		p.differ(
			"%s of layers that the model class does not build are kept; the official route drops them", count(n, "tensor"))
	}
	if casts > 0 {
		p.differ("%s keep the source's type; the official route casts them to the model's",
			count(casts, "plain tensor"))
	}
	p.findReaders(c)
	if p.Derived() && p.Readers[0].Loads != Loads {
		p.warn(
			"untested: the catalog does not know this model, and no one has loaded a model converted this way yet; " +
				"its list of compressed modules was derived from tensor names and shapes")
	}
}

// Gain says in one line what a conversion of nBefore bytes to nAfter bytes gains, and what much of
// the model is that stays as it is.
func (p *Plan) Gain(nBefore, nAfter int64) string {
	percent := 100 * float64(nAfter) / float64(max(nBefore, 1))
	text := fmt.Sprintf("%s → %s (%.0f %%)", human.Bytes(nBefore), human.Bytes(nAfter), percent)
	if why := p.PlainShares(); why != "" {
		text = fmt.Sprintf("saves %.0f %%: of this model %s; %s", 100-percent, why, text)
	}
	if p.Twin != "" {
		text += "; " + p.Twin
	}
	return text
}

// PlainShares says which tensors outside of units are a tenth of the model or more: "26 % is a tied
// embedding, which stays BF16".
func (p *Plan) PlainShares() string {
	var shares []string
	var tied, fused int64
	for _, t := range p.Remainder {
		if p.TiedEmbeddings && len(t.Shape) == 2 && slices.Contains(tableNames,
			catalog.Leaf(catalog.Parent(t.Name))) {
			tied += t.Length
		} else if len(t.Shape) == 3 {
			fused += t.Length
		}
	}
	plain := p.PlainBytes()
	for _, part := range []struct {
		nBytes int64
		is     string
	}{
		{tied, "is a tied embedding, which stays BF16"},
		{fused, "is fused 3-D experts, which the loader cannot take"},
		{plain - tied - fused, "is in no module that is compressed"},
	} {
		if percent := 100 * part.nBytes / max(p.UnitBytes()+plain, 1); percent >= 10 {
			shares = append(shares, fmt.Sprintf("%d %% %s", percent, part.is))
		}
	}
	return strings.Join(shares, ", ")
}

// warnDTypes warns of plain tensors in another floating-point type than the model's, and counts
// them.
func (p *Plan) warnDTypes(model safetensors.DType) (casts int) {
	byType := map[safetensors.DType]int{}
	for _, t := range p.plainTensors() {
		if t.DType != model && isFloat(t.DType) {
			byType[t.DType]++
			casts++
		}
	}
	for _, dtype := range slices.Sorted(maps.Keys(byType)) {
		p.warn("%s in a %s model: kept as stored, a loader may convert them",
			count(byType[dtype], fmt.Sprintf("plain %s tensor", dtype)), model)
	}
	return casts
}

// countExtra counts the tensors of layers that the model class does not build.
func countExtra(tensors []Tensor, cfg *catalog.Config) (n int) {
	for _, t := range tensors {
		if cfg.IsExtraLayer(catalog.Parent(t.Name)) {
			n++
		}
	}
	return n
}
