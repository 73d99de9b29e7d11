package budget

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Limits of sampling: the share of a model that may be read, and how much of any model.
const (
	sampleShare    = 100
	minSampleBytes = 8_000_000
	maxSampleBytes = 64 << 20 // more only costs time: by then, the estimate is good to 0.1%
	maxRuns        = 1000     // each is a request if the source is on the Hub
	runsPerUnit    = 8        // fewer say too little about a unit
	unitsAtOnce    = 8
	smallModel     = 32 << 20 // smaller ones are read in full, in few requests
)

// wholeFiles is a repo whose weight files are read in full, once each.
type wholeFiles struct {
	model.Source
	files []func() ([]byte, error)
}

func newWholeFiles(ctx context.Context, src model.Source, p *plan.Plan) wholeFiles {
	w := wholeFiles{Source: src}
	for i, f := range p.Source().Weights {
		w.files = append(w.files, sync.OnceValues(func() ([]byte, error) {
			b := make([]byte, f.Size)
			return b, src.ReadRange(ctx, i, b, 0)
		}))
	}
	return w
}

func (w wholeFiles) ReadRange(_ context.Context, file int, p []byte, off int64) error {
	b, err := w.files[file]()
	if err == nil {
		copy(p, b[off:])
	}
	return err
}

// DefaultSampleBytes returns how much of the weights an estimate may read. A small source is read
// in full. Of others it's the usual share.
func DefaultSampleBytes(m *model.Model) int64 {
	nBytes := m.Listing.WeightBytes()
	if nBytes <= smallModel {
		return nBytes
	}
	return min(max(nBytes/sampleShare, minSampleBytes), maxSampleBytes)
}

// A run is n of a unit's weights in encoding order, starting at number elem.
type run struct{ elem, n int64 }

// chooseRuns spreads at most maxBytes over the units. Units that are alike share what their group
// gets. If that is too little for all of them, some represent their neighbors.
func chooseRuns(p *plan.Plan, maxBytes int64) [][]run {
	runs := make([][]run, len(p.Units))
	total := p.UnitBytes()
	if maxBytes <= 0 || total == 0 {
		return runs
	}
	whole := total <= maxBytes
	runBytes := min(max(maxBytes/maxRuns, 16<<10)&^4095, 256<<10)
	for _, group := range alikeUnits(p) {
		u := p.Units[group[0]]
		nBytes := sourceWidth(u) * u.NElems()
		nRuns := int(
			float64(maxBytes/runBytes) * float64(nBytes) * float64(len(group)) / float64(total))
		chosen := min(len(group), max(1, nRuns/runsPerUnit))
		if whole {
			chosen = len(group)
		}
		for j := range chosen {
			i := group[(2*j+1)*len(group)/(2*chosen)]
			runs[i] = spread(p.Units[i], max(1, nRuns/chosen), runBytes/sourceWidth(u), whole)
		}
	}
	return runs
}

// spread places k runs of n weights evenly over a unit. If they would cover the unit, or with
// whole, one run takes everything.
func spread(u plan.Unit, k int, n int64, whole bool) []run {
	nElems := u.NElems()
	if whole || int64(k)*n >= nElems {
		return []run{{0, nElems}}
	}
	runs := make([]run, k)
	for j := range runs {
		middle := int64(float64(nElems) * (2*float64(j) + 1) / float64(2*k))
		runs[j] = run{min(max(0, middle-n/2), nElems-n), n}
	}
	return runs
}

// likeness says which units are alike: units with equal likeness have weights of the same kind.
type likeness struct {
	pattern, nAttrs int
	nElems          int64
}

// alikeUnits groups the units that DF11 can hold by likeness, each group in the plan's order.
func alikeUnits(p *plan.Plan) map[likeness][]int {
	groups := map[likeness][]int{}
	for i, u := range p.Units {
		if u.Unholdable == "" {
			k := likeness{u.Pattern, len(u.Attrs), u.NElems()}
			groups[k] = append(groups[k], i)
		}
	}
	return groups
}

// sourceWidth returns the size of a weight in the source, in bytes.
func sourceWidth(u plan.Unit) int64 {
	if len(u.Attrs) > 0 && u.Attrs[0].ExactF32 {
		return 4
	}
	return 2
}

// sample reads the runs of a unit's weights and computes the code that the encoder would give them.
func (e *UnitEstimate) sample(ctx context.Context, u plan.Unit, weights io.ReaderAt,
	runs []run) error {
	for _, r := range runs {
		e.Sampled += r.n
	}
	whole, sizes := e.Sampled == u.NElems(), []int64{e.Sampled}
	if whole {
		sizes = u.Sizes()
	}
	counter, err := encoder.NewCounter(sizes)
	if err != nil {
		return err
	}
	if e.low, err = countRuns(ctx, counter, weights, runs); err != nil {
		return err
	}
	sampled, err := counter.Finish()
	unsupported := (*encoder.UnsupportedError)(nil)
	switch {
	case err == nil:
		e.bits, e.rows = float64(sampled.Stats().NBits)/float64(
			e.Sampled), sampled.Tensors()[0].Shape[0]
	case !errors.As(err, &unsupported):
		return err
	case whole || unsupported.Reason == encoder.ReasonExponentRange:
		e.BF16 = string(unsupported.Reason)
	}
	return nil
}

// countRuns is the encoder's pass 1 over runs of a unit's weights, as if they were the whole unit.
// It returns all bits set in the weights' lower bytes.
func countRuns(ctx context.Context, c *encoder.Counter, weights io.ReaderAt,
	runs []run) (low byte, err error) {
	buf := streams.GetBlock()
	defer streams.PutBlock(buf)
	var at int64
	for _, r := range runs {
		for r.n > 0 {
			if err := ctx.Err(); err != nil {
				return 0, context.Cause(ctx)
			}
			n := min(r.n, streams.BlockBytes/2)
			if err := streams.ReadFull(weights, buf[:2*n], 2*r.elem); err != nil {
				return 0, err
			}
			c.Add(at, buf[:2*n])
			low |= lowBits(buf[:2*n])
			r.elem, r.n, at = r.elem+n, r.n-n, at+n
		}
	}
	return low, nil
}

// lowBits returns all bits set in the lower bytes of weights.
func lowBits(bf16 []byte) (low byte) {
	for i := 0; i < len(bf16); i += 2 {
		low |= bf16[i]
	}
	return low
}
