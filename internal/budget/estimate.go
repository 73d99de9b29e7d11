package budget

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Typical figures for units that weren't sampled. With gaps and positions, they make the 68% of
// BF16 that a conversion assumes before it reads anything.
const (
	typicalBits = 2.68 // of code for a weight's exponent
	typicalLUTs = 5    // table rows of a unit
)

// Estimate is what a conversion will write, estimated from samples of the weights.
type Estimate struct {
	Units        []UnitEstimate `json:"-"`             // the plan's units, in its order
	Files        []int64        `json:"-"`             // sizes of the plan's output files, in its order
	OutputBytes  int64          `json:"output_bytes"`  // all output files with their headers
	SampledBytes int64          `json:"sampled_bytes"` // read from the source; 0 if sampling was off
	Exact        bool           `json:"exact"`         // every weight was read, so sizes are exact
	AliasBytes   int64          `json:"-"`             // of tied tensors that were compared and equal
	// lowest bits of the mantissa that are 0 in all weights that were read; at most 7 in BF16
	EmptyBits int `json:"empty_mantissa_bits"`
}

// UnitEstimate is what is known of a unit's weights.
type UnitEstimate struct {
	BF16    string // why the unit will not be compressed; "" if it will
	Bytes   int64  // of the stored weights: six tensors, or the source's values as BF16
	Sampled int64  // weights that were read

	bits float64 // of code per weight; 0 if unknown
	rows int64   // of lookup tables
	low  byte    // all bits set in the lower byte of some weight that was read
}

// Sample reads at most maxBytes of the weights, spread over the units, and estimates the size of
// the result. If maxBytes is 0, it reads nothing and assumes the ratio of published models. As in
// the conversion, F32 weights in the samples that don't fit BF16 are a spans.InexactError, and tied
// tensors that differ there are a spans.AliasError.
func Sample(ctx context.Context, src model.Source, p *plan.Plan,
	maxBytes int64) (*Estimate, error) {
	e := &Estimate{Units: make([]UnitEstimate, len(p.Units)), Exact: maxBytes > 0}
	onHub, nBytes := p.Source().Commit != "", p.SourceBytes()
	if onHub && nBytes <= min(maxBytes, smallModel) {
		src = newWholeFiles(ctx, src, p)
	}
	if maxBytes > 0 {
		var err error
		if e.AliasBytes, err = SampleAliases(ctx, src, p, nBytes <= maxBytes); err != nil {
			return nil, err
		}
	}
	runs := chooseRuns(p, maxBytes)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(unitsAtOnce)
	for i, u := range p.Units {
		e.Units[i].BF16 = u.Unholdable
		if len(runs[i]) == 0 {
			continue
		}
		g.Go(func() error {
			if err := e.Units[i].sample(gctx, u, weightReader{gctx, src, p, u}, runs[i]); err != nil {
				return fmt.Errorf("sample module %s: %w", u.Path, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	low := byte(0)
	for i, u := range p.Units {
		low |= e.Units[i].low
		e.SampledBytes += e.Units[i].Sampled * sourceWidth(u)
		e.Exact = e.Exact && (e.Units[i].Sampled == u.NElems() || u.Unholdable != "")
	}
	if e.SampledBytes > 0 {
		e.EmptyBits = min(bits.TrailingZeros8(low), 7)
	}
	e.fillGaps(p)
	return e, e.layOut(p)
}

// CheckGain refuses a model if the estimate shows that DF11 can hold none of its modules.
func (e *Estimate) CheckGain(p *plan.Plan) error {
	units := make([]metadata.Unit, len(p.Units))
	for i, u := range p.Units {
		units[i] = metadata.Unit{Path: u.Path, Status: metadata.DF11, Reason: e.Units[i].BF16}
		if e.Units[i].BF16 != "" {
			units[i].Status = metadata.BF16
		}
	}
	return metadata.CheckGain(units)
}

// fillGaps estimates a unit that wasn't sampled like the sampled unit before it in its group, or else
// like the first.
func (e *Estimate) fillGaps(p *plan.Plan) {
	isSampled := func(i int) bool { return e.Units[i].bits > 0 }
	for _, group := range alikeUnits(p) {
		like := UnitEstimate{bits: typicalBits, rows: typicalLUTs}
		if first := slices.IndexFunc(group, isSampled); first >= 0 {
			like = e.Units[group[first]]
		}
		for _, i := range group {
			if x := &e.Units[i]; isSampled(i) {
				like = *x
			} else if x.BF16 == "" {
				x.bits, x.rows = like.bits, like.rows
			}
		}
	}
}

// layOut computes the size of every unit, and of every output file as the writer will lay it out.
func (e *Estimate) layOut(p *plan.Plan) error {
	for _, f := range p.OutputFiles {
		var entries []safetensors.Entry
		plain := slices.Clone(f.Plain)
		for _, i := range f.Units {
			u, x := p.Units[i], &e.Units[i]
			plain = append(plain, u.Siblings...)
			if x.BF16 != "" {
				plain, x.Bytes = append(plain, u.Attrs...), u.NBytes()
				continue
			}
			var coded []safetensors.Entry
			coded, x.Bytes = x.coded(u)
			entries = append(entries, coded...)
		}
		for _, t := range plain {
			entries = append(entries,
				safetensors.Entry{Name: t.Name, DType: t.StoredDType(), Shape: t.Shape})
		}
		header, err := safetensors.NewHeader(f.Metadata, entries)
		if err != nil {
			return fmt.Errorf("lay out %s: %w", f.Path, err)
		}
		e.OutputBytes += header.Size()
		e.Files = append(e.Files, header.Size())
	}
	return nil
}

// coded returns the six tensors that a unit is stored as, and their size.
func (e *UnitEstimate) coded(u plan.Unit) (entries []safetensors.Entry, nBytes int64) {
	n := u.NElems()
	c := encoder.Counts{Rows: e.rows, Coded: (int64(math.Round(e.bits*float64(n))) + 7) / 8,
		Elems: n, Tensors: int64(len(u.Attrs))}
	c.Marked = c.Chunks()
	for _, t := range c.Stored() {
		nBytes += t.NBytes
		entries = append(entries, safetensors.Entry{Name: u.Path + "." + t.Name,
			DType: safetensors.DType(t.DType), Shape: t.Shape})
	}
	return entries, nBytes
}
