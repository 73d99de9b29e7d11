package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// typicalExponentBits is what a trained weight's exponent takes as a code: with its share of gaps and positions this is
// 68 % of BF16, the middle of the published models. It stands for units that were not sampled.
const typicalExponentBits = 2.68

// Limits of sampling: the share of a model that may be read, and what may be read of any model.
const (
	sampleShare    = 100
	minSampleBytes = 8_000_000
	maxSampleBytes = 64 << 20 // more only costs time: the estimate is good to 0.1 % long before
	maxSamples     = 1000     // ranges, which are requests if the source is on the Hub
	samplesPerUnit = 8        // the fewest ranges that say something about a unit
	samplesAtOnce  = 8
)

// DefaultSampleBytes is what an estimate may read of a source: 1 % of its weights or 8 MB, whichever is more, at most
// 64 MiB, less what the plan has taken of it: headers, small files, and the list of its files.
func DefaultSampleBytes(m *Model) int64 {
	taken := int64(len(m.Plan.Index) + len(m.Plan.Config) + len(m.Plan.ModelIndex) + listedFileBytes*(1+len(m.Plan.Files)))
	for _, f := range m.Plan.Files {
		if f.Path == cardName {
			taken += f.Size
		}
	}
	var nBytes int64
	for _, w := range m.Plan.Weights {
		nBytes += w.Size
		taken += min(w.Size, max(firstHeaderRead, w.Header.DataStart()))
	}
	return max(0, min(max(nBytes/sampleShare, minSampleBytes)-taken, maxSampleBytes))
}

// listedFileBytes is about what the Hub's answer to a request for a repo takes for each of its files, and for the rest.
const listedFileBytes = 512

// Estimate is what a conversion will write, judged from samples of the weights.
type Estimate struct {
	// Units are the plan's units in their order, OutputBytes all weight files with their headers.
	Units       []UnitEstimate
	OutputBytes int64
	// Files are the sizes of the plan's output files, in its order.
	Files []int64
	// SampledBytes were read in Samples ranges; 0 if sampling was off.
	SampledBytes int64
	Samples      int
	// Exact: every weight was read, so that sizes are not estimates.
	Exact bool
}

// UnitEstimate is what is known of a unit's weights.
type UnitEstimate struct {
	// BF16 says why the unit will not be compressed; "" if it will.
	BF16 string
	// Bytes is the size of its stored weights: six tensors, or the source's bytes.
	Bytes int64
	// Bits is the length of the coded exponents, LUTs the number of table rows.
	Bits int64
	LUTs int64
	// Sampled is how many weights were read; Stats describes these alone and is nil if there are none.
	Sampled int64
	Stats   *encoder.Stats
	// Exact: all weights were read.
	Exact bool
}

// EstimateSize reads at most maxBytes of the weights, spread over the units, and estimates the size of the result. With
// maxBytes 0 nothing is read and the ratio of published models is assumed. F32 weights among them that do not fit BF16 are
// an InexactError, as the conversion's would be.
func EstimateSize(ctx context.Context, src Source, p *plan.Plan, maxBytes int64) (*Estimate, error) {
	e := &Estimate{Units: make([]UnitEstimate, len(p.Units))}
	samples, inexact := chooseSamples(p, maxBytes), &inexactCount{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(samplesAtOnce)
	for i, u := range p.Units {
		e.Units[i].BF16 = u.Unholdable
		if len(samples[i]) == 0 {
			continue
		}
		g.Go(func() error {
			if err := e.Units[i].sample(gctx, unitReader{gctx, src, u, inexact}, samples[i]); err != nil {
				return fmt.Errorf("sample unit %s: %w", u.Path, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	e.Exact = maxBytes > 0
	for i, u := range p.Units {
		e.SampledBytes += e.Units[i].Sampled * sourceWidth(u)
		e.Samples += len(samples[i])
		e.Exact = e.Exact && (e.Units[i].Exact || u.Unholdable != "")
	}
	scope := ScopeSample
	if e.Exact && inexact.of == nExactF32(p) {
		scope = ScopeModel
	}
	if err := inexact.err(p, scope); err != nil {
		return nil, err
	}
	e.fillGaps(p)
	return e, e.layOut(p)
}

// sample is a run of a unit's weights in encoding order.
type sample struct{ elem, n int64 }

// chooseSamples spreads at most maxBytes over the units: units that are alike share what their group gets, and if it is
// too little for all of them, some stand for their neighbours.
func chooseSamples(p *plan.Plan, maxBytes int64) [][]sample {
	out := make([][]sample, len(p.Units))
	total := p.UnitBytes()
	if maxBytes <= 0 || total == 0 {
		return out
	}
	whole := total <= maxBytes
	rangeBytes := min(max(maxBytes/maxSamples, 16<<10)&^4095, 256<<10)
	for _, group := range alikeUnits(p) {
		u := p.Units[group[0]]
		nBytes := sourceWidth(u) * u.NElems()
		nRanges := int(float64(maxBytes/rangeBytes) * float64(nBytes) * float64(len(group)) / float64(total))
		chosen := min(len(group), max(1, nRanges/samplesPerUnit))
		if whole {
			chosen = len(group)
		}
		for j := range chosen {
			i := group[(2*j+1)*len(group)/(2*chosen)]
			out[i] = spread(p.Units[i], max(1, nRanges/chosen), rangeBytes/sourceWidth(u), whole)
		}
	}
	return out
}

// spread places k runs of n weights evenly over a unit; if they would cover it, or whole asks for it, one run takes all.
func spread(u plan.Unit, k int, n int64, whole bool) []sample {
	nElems := u.NElems()
	if whole || int64(k)*n >= nElems {
		return []sample{{0, nElems}}
	}
	out := make([]sample, k)
	for j := range out {
		middle := int64(float64(nElems) * (2*float64(j) + 1) / float64(2*k))
		out[j] = sample{min(max(0, middle-n/2), nElems-n), n}
	}
	return out
}

// alikeUnits groups the units that DF11 can hold by pattern and shape, in the plan's order.
func alikeUnits(p *plan.Plan) [][]int {
	type key struct {
		pattern, nAttrs int
		nElems          int64
	}
	at := map[key]int{}
	var groups [][]int
	for i, u := range p.Units {
		if u.Unholdable != "" {
			continue
		}
		k := key{u.Pattern, len(u.Attrs), u.NElems()}
		if _, seen := at[k]; !seen {
			at[k] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[k]] = append(groups[at[k]], i)
	}
	return groups
}

// sourceWidth is the number of bytes of a weight in the source.
func sourceWidth(u plan.Unit) int64 {
	if len(u.Attrs) > 0 && u.Attrs[0].ExactF32 {
		return 4
	}
	return 2
}

// sample reads the runs and encodes their histogram.
func (e *UnitEstimate) sample(ctx context.Context, r unitReader, runs []sample) error {
	for _, s := range runs {
		e.Sampled += s.n
	}
	e.Exact = e.Sampled == r.unit.NElems()
	sizes := []int64{e.Sampled}
	if e.Exact {
		sizes = r.unit.Sizes()
	}
	counter, err := encoder.NewCounter(sizes)
	if err != nil {
		return err
	}
	if err := countSamples(ctx, counter, r, runs); err != nil {
		return err
	}
	coded, err := counter.Finish()
	unsupported := (*encoder.UnsupportedError)(nil)
	switch {
	case err == nil:
		e.take(coded, r.unit)
	case !errors.As(err, &unsupported):
		return err
	case e.Exact || unsupported.Reason == encoder.ReasonExponentRange:
		e.BF16 = string(unsupported.Reason)
	}
	return nil
}

// countSamples is pass 1 over the runs, as if they were all there is.
func countSamples(ctx context.Context, c *encoder.Counter, r unitReader, runs []sample) error {
	buf := make([]byte, min(2*slices.MaxFunc(runs, func(a, b sample) int { return cmp.Compare(a.n, b.n) }).n, blockBytes))
	var at int64
	for _, s := range runs {
		for done := int64(0); done < s.n; {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			n := min(s.n-done, int64(len(buf)/2))
			if _, err := r.ReadAt(buf[:2*n], 2*(s.elem+done)); err != nil {
				return err
			}
			c.Add(at, buf[:2*n])
			done, at = done+n, at+n
		}
	}
	return nil
}

// take projects what the sample's code costs onto the whole unit.
func (e *UnitEstimate) take(coded *encoder.Unit, u plan.Unit) {
	stats := coded.Stats()
	e.Stats = &stats
	e.LUTs = coded.Tensors()[0].Shape[0]
	e.setBits(u, int64(float64(stats.NBits)*(float64(u.NElems())/float64(e.Sampled))))
	if e.Exact {
		e.Bits, e.Bytes = stats.NBits, 0
		for _, t := range coded.Tensors() {
			e.Bytes += t.NBytes
		}
	}
}

// setBits sets the size that follows from the length of the coded exponents.
func (e *UnitEstimate) setBits(u plan.Unit, nBits int64) {
	e.Bits, e.Bytes = nBits, 0
	for _, t := range unitTensors(u, *e) {
		e.Bytes += t.NBytes()
	}
}

// unitTensors are the six tensors of a unit whose code has e.Bits bits (docs/format.md §8).
func unitTensors(u plan.Unit, e UnitEstimate) []safetensors.Tensor {
	coded := (e.Bits + 7) / 8
	chunks := (coded + 4095) / 4096
	bytes := func(name string, n int64) safetensors.Tensor {
		return safetensors.Tensor{Name: u.Path + "." + name, DType: "U8", Shape: []int64{n}, End: n}
	}
	splits := int64(len(u.Attrs) - 1)
	return []safetensors.Tensor{
		{Name: u.Path + ".luts", DType: "U8", Shape: []int64{e.LUTs, 256}, End: 256 * e.LUTs},
		bytes("encoded_exponent", coded), bytes("sign_mantissa", u.NElems()),
		bytes("output_positions", 4*(chunks+1)), bytes("gaps", 320*chunks),
		{Name: u.Path + ".split_positions", DType: "I64", Shape: []int64{splits}, End: 8 * splits},
	}
}

// fillGaps gives every unit that was not sampled the code length of the nearest one that is like it.
func (e *Estimate) fillGaps(p *plan.Plan) {
	for _, group := range alikeUnits(p) {
		for at, i := range group {
			u, x := p.Units[i], &e.Units[i]
			switch {
			case x.BF16 != "":
			case x.Stats == nil:
				bits, rows := e.nearest(group, at)
				x.LUTs = rows
				x.setBits(u, int64(bits*float64(u.NElems())))
			}
		}
	}
	for i, u := range p.Units {
		if e.Units[i].BF16 != "" {
			e.Units[i].Bytes = 2 * u.NElems()
		}
	}
}

// nearest is the code length per weight of the sampled unit that is closest to position at of the group.
func (e *Estimate) nearest(group []int, at int) (bits float64, rows int64) {
	bits, rows = typicalExponentBits, 5
	best := len(group)
	for j, i := range group {
		if s := e.Units[i].Stats; s != nil && max(at-j, j-at) < best {
			best = max(at-j, j-at)
			bits, rows = float64(s.NBits)/float64(s.NElems), e.Units[i].LUTs
		}
	}
	return bits, rows
}

// layOut sizes every output file as the writer will lay it out.
func (e *Estimate) layOut(p *plan.Plan) error {
	for _, f := range p.OutputFiles {
		var es []safetensors.Entry
		for _, i := range f.Units {
			u := p.Units[i]
			if e.Units[i].BF16 == "" {
				for _, t := range unitTensors(u, e.Units[i]) {
					es = append(es, safetensors.Entry{Name: t.Name, DType: t.DType, Shape: t.Shape})
				}
			}
			for _, a := range plainOf(u, e.Units[i]) {
				es = append(es, safetensors.Entry{Name: a.Name, DType: storedDType(a), Shape: a.Shape})
			}
		}
		for _, t := range f.Plain {
			es = append(es, safetensors.Entry{Name: t.Name, DType: storedDType(t), Shape: t.Shape})
		}
		layout, err := safetensors.NewLayout(f.Metadata, es)
		if err != nil {
			return fmt.Errorf("lay out %s: %w", f.Path, err)
		}
		e.OutputBytes += layout.Size
		e.Files = append(e.Files, layout.Size)
	}
	return nil
}

// plainOf are the tensors of a unit that are stored unchanged.
func plainOf(u plan.Unit, e UnitEstimate) []plan.Tensor {
	if e.BF16 == "" {
		return u.Siblings
	}
	return append(slices.Clone(u.Attrs), u.Siblings...)
}

// unitReader reads a unit's weights as BF16 in encoding order, by ranges of the source.
type unitReader struct {
	ctx  context.Context //nolint:containedctx // io.ReaderAt has no room for one; the value lives for one estimate
	src  Source
	unit plan.Unit
	// inexact counts what was read of F32 tensors.
	inexact *inexactCount
}

func (r unitReader) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for _, t := range r.unit.Attrs {
		nBytes := spoolBytes(t)
		if off >= nBytes {
			off -= nBytes
			continue
		}
		n := min(int64(len(p)-done), nBytes-off)
		if err := r.read(t, p[done:done+int(n)], off); err != nil {
			return done, err
		}
		if done, off = done+int(n), 0; done == len(p) {
			return done, nil
		}
	}
	return done, io.EOF
}

// read fills p with a tensor's BF16 bytes from off on.
func (r unitReader) read(t plan.Tensor, p []byte, off int64) error {
	scale := t.Length / spoolBytes(t)
	b, err := r.src.ReadRange(r.ctx, t.File, t.Offset+off*scale, int64(len(p))*scale)
	if err != nil {
		return err
	}
	if t.ExactF32 {
		_, n := narrowF32(p, b, 0)
		r.inexact.add(t, n, int64(len(b)/4))
		return nil
	}
	copy(p, b)
	return nil
}
