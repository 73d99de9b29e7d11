package describe

import (
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/estimate"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

const (
	// decodedWhole is the size, as BF16, up to which a local model is decoded whole.
	decodedWhole = 256 << 20
	// remoteRuns is about how many runs of a remote model are decoded: each takes three requests.
	remoteRuns = 160
	// runElems is how many weights are decoded at a time: about one chunk.
	runElems = 12 << 10
	// unitsAtOnce is how many units are read at a time.
	unitsAtOnce = 8
)

// DefaultSampleBytes is what a description decodes of a DF11 model, in bytes of BF16: everything of a small local model, else
// as much as an estimate reads of a source.
func DefaultSampleBytes(d *model.DF11) int64 {
	var nBytes int64
	for _, w := range d.WeightFiles() {
		nBytes += w.Size
	}
	if !d.Remote() && 2*nBytes <= decodedWhole {
		return 2 * nBytes
	}
	return estimate.SampleBytes(nBytes, 0)
}

// DF11 describes a DF11 model. Headers and tables are read whole; of the weights at most about maxBytes are
// decoded for the distribution of their exponents, spread over the units.
func DF11(ctx context.Context, d *model.DF11, maxBytes int64) (*Report, error) {
	r := &Report{Exact: true, Name: d.Name, Commit: d.Commit, Kind: KindDF11, Layout: d.Layout()}
	var err error
	if r.Traps, err = d.ProblemsAlone(ctx); err != nil {
		return nil, err
	}
	if d.Manifest != nil {
		r.Entry = d.Manifest.Plan.Entry
	}
	addFiles(r, d.WeightFiles())
	sizes, units := sortTensors(d)
	if r.Units, err = describeUnits(ctx, d, units, maxBytes); err != nil {
		return nil, err
	}
	r.DF11Bytes, r.BF16Bytes = r.Bytes, r.Bytes+sizes[PartPlain]
	for _, nBytes := range sizes {
		r.BF16Bytes -= nBytes
	}
	for _, u := range r.Units {
		r.BF16Bytes += 2 * u.Weights
		r.Exact = r.Exact && int64(u.Histogram.Total()) == u.Weights
	}
	r.Parts = sizes.List(r.Bytes)
	r.Finish()
	return r, nil
}

// sortTensors adds up the parts and lists the paths of the coded units.
func sortTensors(d *model.DF11) (sizes Parts, units []string) {
	sizes = Parts{}
	for _, name := range d.Tensors() {
		t, _ := d.Tensor(name)
		dot := strings.LastIndexByte(name, '.')
		part := partOf[name[dot+1:]]
		if dot < 0 || part == "" || !d.Coded(name[:dot]) {
			part = PartPlain
		}
		sizes[part] += t.NBytes()
		if part == PartExponents {
			units = append(units, name[:dot])
		}
	}
	return sizes, units
}

// describeUnits describes several units at a time. Each gets the share of maxBytes that it has of all coded weights.
func describeUnits(ctx context.Context, d *model.DF11, paths []string, maxBytes int64) ([]Unit, error) {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(unitsAtOnce)
	arrays := make([]verify.Arrays, len(paths))
	var total int64
	for i, path := range paths {
		arrays[i] = d.SparseArrays(gctx, path)
		total += arrays[i].SignMantissa.Size()
	}
	units := make([]Unit, len(paths))
	for i, path := range paths {
		var share int64
		if total > 0 {
			share = int64(float64(maxBytes/2) * float64(arrays[i].SignMantissa.Size()) / float64(total))
		}
		if d.Remote() && maxBytes > 0 {
			share = min(share, int64(max(2, remoteRuns/len(paths)))*runElems)
		}
		g.Go(func() error {
			err := d.CheckForm(path)
			if err == nil {
				units[i], err = describeUnit(gctx, path, arrays[i], share)
			}
			if err != nil {
				return fmt.Errorf("module %s: %w", path, err)
			}
			return nil
		})
	}
	return units, g.Wait()
}

// describeUnit reads a unit's tables, and decodes at most maxElems of its weights.
func describeUnit(ctx context.Context, path string, a verify.Arrays, maxElems int64) (Unit, error) {
	x := Unit{Path: path, Weights: a.SignMantissa.Size()}
	opened, err := verify.Open(a, x.Weights, nil) // until then the number of tensors is only what a header says
	if err != nil {
		return x, err
	}
	x.Tensors = len(opened.Sizes())
	for _, s := range []*io.SectionReader{a.LUTs, a.EncodedExponent, a.SignMantissa, a.OutputPositions, a.Gaps, a.SplitPositions} {
		x.Bytes += s.Size()
	}
	x.NBits, x.LUTs = 8*a.EncodedExponent.Size(), int(a.LUTs.Size()/256)
	var lengths [256]uint8
	if err := streams.ReadFull(a.LUTs, lengths[:], a.LUTs.Size()-256); err != nil {
		return x, err
	}
	x.setCodes(lengths)
	if err := countRuns(ctx, opened, maxElems, &x.Histogram); err != nil {
		return x, err
	}
	x.Finish()
	return x, nil
}

// countRuns counts the exponents of at most maxElems weights of a unit, spread over it, or of all if there are not more.
func countRuns(ctx context.Context, u *verify.Unit, maxElems int64, h *Histogram) error {
	buf := make([]byte, 2*runElems)
	runs := (u.NElems() + runElems - 1) / runElems
	picked := min(runs, maxElems/runElems)
	if u.NElems() <= maxElems {
		picked = runs
	}
	for i := range picked {
		run := (2*i + 1) * runs / (2 * picked)
		n := min(runElems, u.NElems()-run*runElems)
		if err := u.DecodeRange(ctx, run*runElems, n, buf[:2*n]); err != nil {
			return err
		}
		h.Add(buf[:2*n])
	}
	return nil
}
