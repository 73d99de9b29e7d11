package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Stays says which large share of the model stays BF16, and what another repo could compress. It
// returns "" if neither applies.
func (p *Plan) Stays() string {
	return strings.Trim(p.PlainShares()+"; "+p.Twin, "; ")
}

// PlainShares says what makes up 10% or more of the model outside of units: "26% of the model is a
// tied embedding, which stays BF16".
func (p *Plan) PlainShares() string {
	var shares []string
	var tied, fused int64
	tiedAs := safetensors.BF16
	for _, t := range p.plainTensors() {
		if p.TiedEmbeddings && len(t.Shape) == 2 && slices.Contains(tableNames,
			catalog.Leaf(catalog.Parent(t.Name))) {
			tied, tiedAs = tied+t.Length, t.DType
		} else if t.IsFusedExperts() {
			fused += t.Length
		}
	}
	plain := p.PlainBytes()
	for _, part := range []struct {
		nBytes int64
		is     string
	}{
		{tied, "is a tied embedding, which stays " + string(tiedAs)},
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
