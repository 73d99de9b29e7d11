package pipeline

import (
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/inspect"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// pictureName is the model card's picture.
const pictureName = "df11.png"

// hasPicture tells whether the result gets a picture: not if the source has a file of that name.
func (r *run) hasPicture() bool {
	return !slices.ContainsFunc(r.Plan.Copied, func(f plan.File) bool { return f.Path == pictureName })
}

// picture draws sizes and exponents of the finished outputs for the model card. It names nothing, so that the same
// weights give the same picture wherever they come from.
func (r *run) picture(p *Report) ([]byte, error) {
	x := &inspect.Report{Kind: inspect.DF11, BF16Bytes: p.BF16Bytes, DF11Bytes: p.DF11Bytes, Exact: true}
	parts := partSums{inspect.PartPlain: r.plainBytes(p)}
	for _, o := range r.ledger.all() {
		for _, u := range o.Units {
			if u.Status == statusBF16 {
				continue
			}
			parts[inspect.PartSignMantissa] += u.Weights
			parts[inspect.PartExponents] += (u.Bits + 7) / 8
			x.Units = append(x.Units, u.inspected())
		}
	}
	x.Parts = parts.list(p.DF11Bytes)
	x.Finish()
	b, err := inspect.PNG(x)
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", pictureName, err)
	}
	return b, nil
}

// plainBytes is the size of everything that is stored unchanged.
func (r *run) plainBytes(p *Report) int64 {
	n := int64(0)
	for _, u := range p.UnitsBF16 {
		n += 2 * u.Weights
	}
	for _, t := range r.tasks {
		for _, x := range t.plain {
			n += spoolBytes(x.Tensor)
		}
	}
	return n
}

// inspected is what a picture shows of a unit.
func (u UnitResult) inspected() inspect.Unit {
	x := inspect.Unit{Path: u.Path, Weights: u.Weights, NBits: u.Bits}
	if u.Exponents != nil {
		x.Histogram = *u.Exponents
	}
	x.Finish()
	return x
}

// histogramOf reads the counts of a manifest; nil if there are none, or if they make no sense.
func histogramOf(e *metadata.Exponents) *inspect.Histogram {
	if e == nil || e.First < 0 || e.First+len(e.Counts) > len(inspect.Histogram{}) {
		return nil
	}
	h := &inspect.Histogram{}
	copy(h[e.First:], e.Counts)
	return h
}

// manifestExponents writes counts for a manifest.
func manifestExponents(h *inspect.Histogram) *metadata.Exponents {
	if h == nil || h.Total() == 0 {
		return nil
	}
	first, last := h.Bounds()
	return &metadata.Exponents{First: first, Counts: h[first : last+1]}
}

// exponentsOf is a unit's histogram for the ledger.
func exponentsOf(s encoder.Stats) *inspect.Histogram {
	h := inspect.Histogram(s.Histogram)
	return &h
}
