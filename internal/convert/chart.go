package convert

import (
	"fmt"

	"github.com/df11-convert/df11-convert/internal/charts"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
)

// chart draws sizes and exponents for the model card, from the units of the manifest.
func (r *result) chart() ([]byte, error) {
	x := &describe.Report{BF16Bytes: r.sizes.BF16, DF11Bytes: r.sizes.DF11}
	for _, o := range r.outputs {
		for _, t := range o.Copied {
			x.Parts.Unchanged += t.SpoolBytes()
		}
	}
	for _, u := range r.manifest.Units {
		if u.Status == metadata.BF16 {
			x.Parts.Unchanged += 2 * u.NWeights
			continue
		}
		x.Parts.SignMantissa += u.NWeights
		x.Parts.Exponents += (u.CodedBits + 7) / 8
		x.Units = append(x.Units, charted(u))
	}
	x.Finish()
	b, err := charts.PNG(x)
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", names.Chart, err)
	}
	return b, nil
}

// charted returns what the chart shows of a unit. It leaves out counts that make no sense, which a
// forged journal may have.
func charted(u metadata.Unit) describe.Unit {
	x := describe.Unit{Path: u.Path, Weights: u.NWeights, NBits: u.CodedBits}
	if e := u.Exponents; e != nil && e.First >= 0 && e.First <= len(x.Histogram)-len(e.Counts) {
		copy(x.Histogram[e.First:], e.Counts)
	}
	x.Finish()
	return x
}
