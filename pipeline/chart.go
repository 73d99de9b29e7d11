package pipeline

import (
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/charts"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// chartName is the model card's chart.
const chartName = "df11.png"

// hasChart reports whether the result gets a chart: not if the source has a file of that name.
func (c *conversion) hasChart() bool {
	return !slices.ContainsFunc(c.Plan.Copied, func(f plan.File) bool { return f.Path == chartName })
}

// chart draws sizes and exponents of the finished outputs for the model card.
func (c *conversion) chart(p *Report) ([]byte, error) {
	x := &describe.Report{Kind: describe.KindDF11, BF16Bytes: p.BF16Bytes, DF11Bytes: p.DF11Bytes, Exact: true}
	parts := describe.Parts{describe.PartPlain: c.copiedBytes(p)}
	for _, o := range c.ledger.Outputs() {
		for _, u := range o.Units {
			if u.Status == metadata.BF16 {
				continue
			}
			parts[describe.PartSignMantissa] += u.Weights
			parts[describe.PartExponents] += (u.Bits + 7) / 8
			x.Units = append(x.Units, inspected(u))
		}
	}
	x.Parts = parts.List(p.DF11Bytes)
	x.Finish()
	b, err := charts.PNG(x)
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", chartName, err)
	}
	return b, nil
}

// copiedBytes is the size of everything that is stored unchanged.
func (c *conversion) copiedBytes(p *Report) (n int64) {
	for _, u := range p.UnitsBF16 {
		n += 2 * u.Weights
	}
	for _, o := range c.outputs {
		for _, t := range o.Copied {
			n += t.SpoolBytes()
		}
	}
	return n
}

// inspected is what a chart shows of a unit. Counts of a journal or a manifest that make no sense are left out.
func inspected(u ledger.Outcome) describe.Unit {
	x := describe.Unit{Path: u.Path, Weights: u.Weights, NBits: u.Bits}
	if e := u.Exponents; e != nil && e.First >= 0 && e.First <= len(x.Histogram)-len(e.Counts) {
		copy(x.Histogram[e.First:], e.Counts)
	}
	x.Finish()
	return x
}
