// Package estimate says before a conversion runs how large its result will be. It reads nothing but samples of the weights.
package estimate

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/exactf32"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Typical figures stand for units that were not sampled. With gaps and positions they make the 68 % of BF16 that a conversion
// assumes before anything was read.
const (
	typicalBits = 2.68 // of code for a weight's exponent
	typicalLUTs = 5    // table rows of a unit
)

// Estimate is what a conversion will write, judged from samples of the weights.
type Estimate struct {
	Units        []UnitEstimate // the plan's units, in its order
	Files        []int64        // sizes of the plan's output files, in its order
	OutputBytes  int64          // all output files with their headers
	SampledBytes int64          // read of the source, in Samples ranges; 0 if sampling was off
	Samples      int
	Exact        bool // every weight was read, so that sizes are not estimates
	EmptyBits    int  // lowest bits of the mantissa that are 0 in all weights that were read; 7 in BF16 at most
}

// UnitEstimate is what is known of a unit's weights.
type UnitEstimate struct {
	BF16    string // why the unit will not be compressed; "" if it will
	Bytes   int64  // of the stored weights: six tensors, or the source's values as BF16
	Sampled int64  // weights that were read

	coded []encoder.StoredTensor // the six tensors of a unit that will be compressed
	bits  float64                // of code for each weight that was read; 0 if there is no such code
	low   byte                   // all bits that any weight that was read has in its lower byte
}

// Sample reads at most maxBytes of the weights, spread over the units, and estimates the size of the result. With maxBytes 0
// nothing is read and the ratio of published models is assumed. F32 weights in the samples that do not fit BF16 are an
// exactf32.InexactError, as in the conversion.
func Sample(ctx context.Context, src model.Source, p *plan.Plan, maxBytes int64) (*Estimate, error) {
	e := &Estimate{Units: make([]UnitEstimate, len(p.Units)), Exact: maxBytes > 0}
	runs, readers := chooseRuns(p, maxBytes), make([]*exactf32.Reader, len(p.Units))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(unitsAtOnce)
	for i, u := range p.Units {
		e.Units[i].BF16 = u.Unholdable
		if len(runs[i]) == 0 {
			continue
		}
		readers[i] = exactf32.NewReader(gctx, src, u)
		g.Go(func() error {
			if err := e.Units[i].sample(gctx, u, readers[i], runs[i]); err != nil {
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
		e.Samples += len(runs[i])
		e.Exact = e.Exact && (e.Units[i].Sampled == u.NElems() || u.Unholdable != "")
	}
	if e.SampledBytes > 0 {
		e.EmptyBits = min(bits.TrailingZeros8(low), 7)
	}
	if err := exactf32.Counted(p, readers); err != nil {
		return nil, err
	}
	e.fillGaps(p)
	return e, e.layOut(p)
}

// codedTensors are the six tensors of a unit whose code takes so many bits for each weight, and rows of tables (docs/format.md §8).
func codedTensors(u plan.Unit, bits float64, rows int64) []encoder.StoredTensor {
	coded := (int64(bits*float64(u.NElems())) + 7) / 8
	chunks := (coded + 4095) / 4096
	splits := int64(len(u.Attrs) - 1)
	bytes := func(name string, n int64) encoder.StoredTensor {
		return encoder.StoredTensor{Name: name, DType: "U8", Shape: []int64{n}, NBytes: n}
	}
	return []encoder.StoredTensor{
		{Name: encoder.NameLUTs, DType: "U8", Shape: []int64{rows, 256}, NBytes: 256 * rows},
		bytes(encoder.NameEncodedExponent, coded),
		bytes(encoder.NameSignMantissa, u.NElems()),
		bytes(encoder.NameOutputPositions, 4*(chunks+1)),
		bytes(encoder.NameGaps, 320*chunks),
		{Name: encoder.NameSplitPositions, DType: "I64", Shape: []int64{splits}, NBytes: 8 * splits},
	}
}

// fillGaps judges units that were not sampled by their nearest neighbors, and sizes all units.
func (e *Estimate) fillGaps(p *plan.Plan) {
	for _, group := range alikeUnits(p) {
		for at, i := range group {
			if x := &e.Units[i]; x.BF16 == "" && x.coded == nil {
				bits, rows := e.nearest(group, at)
				x.coded = codedTensors(p.Units[i], bits, rows)
			}
		}
	}
	for i, u := range p.Units {
		x := &e.Units[i]
		if x.BF16 != "" {
			x.Bytes = 2 * u.NElems()
		}
		for _, t := range x.coded {
			x.Bytes += t.NBytes
		}
	}
}

// nearest gives bits per weight and table rows of the sampled unit that is closest to position at of the group.
func (e *Estimate) nearest(group []int, at int) (bits float64, rows int64) {
	bits, rows = typicalBits, typicalLUTs
	best := len(group)
	for j, i := range group {
		if x := e.Units[i]; x.bits > 0 && max(at-j, j-at) < best {
			best, bits, rows = max(at-j, j-at), x.bits, x.coded[0].Shape[0]
		}
	}
	return bits, rows
}

// layOut sizes every output file as the writer will lay it out.
func (e *Estimate) layOut(p *plan.Plan) error {
	for _, f := range p.OutputFiles {
		var entries []safetensors.Entry
		plain := slices.Clone(f.Plain)
		for _, i := range f.Units {
			u, x := p.Units[i], &e.Units[i]
			if x.BF16 != "" {
				plain = append(plain, u.Attrs...)
			}
			plain = append(plain, u.Siblings...)
			for _, t := range x.coded {
				entries = append(entries, safetensors.Entry{Name: u.Path + "." + t.Name, DType: safetensors.DType(t.DType), Shape: t.Shape})
			}
		}
		for _, t := range plain {
			entries = append(entries, safetensors.Entry{Name: t.Name, DType: t.StoredDType(), Shape: t.Shape})
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
