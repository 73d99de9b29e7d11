// Package describe measures DF11 models: exponent counts, entropy, bits per weight compared with
// the bound, and what the stored bytes are for. It changes, verifies, and draws nothing.
package describe

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

const (
	// runElems is how many weights are decoded at a time: about one chunk.
	runElems = 12 << 10
	// localRuns is how many runs are decoded of a local model: all of a small one.
	localRuns = 4096
	// remoteRuns is how many runs are decoded of a repo. Each takes three requests.
	remoteRuns = 160
	// unitsAtOnce is how many units are read at a time.
	unitsAtOnce = 8
)

// DF11 describes a DF11 model. It reads all headers and tables. For the distribution of exponents,
// it decodes some runs of weights, spread over the units.
func DF11(ctx context.Context, d *model.DF11) (*Report, error) {
	r := &Report{Name: d.Name, Commit: d.Commit}
	paths := r.addTensors(d)
	var err error
	if r.Traps, err = d.ProblemsAlone(ctx); err != nil {
		return nil, err
	}
	if r.Units, err = describeUnits(ctx, d, paths); err != nil {
		return nil, err
	}
	r.Finish()
	return r, nil
}

// addTensors sums up files and tensors, and returns the paths of the coded units.
func (r *Report) addTensors(d *model.DF11) (units []string) {
	for _, w := range d.WeightFiles() {
		r.Files++
		r.DF11Bytes += w.Size
		r.BF16Bytes += w.Header.DataStart()
		for _, t := range w.Header.Tensors {
			dot := strings.LastIndexByte(t.Name, '.')
			switch path, name := t.Name[:max(0, dot)], t.Name[dot+1:]; {
			case !d.Coded(path) || !encoder.IsArrayName(name):
				r.Parts.Unchanged += t.NBytes()
				r.BF16Bytes += t.NBytes()
			case name == encoder.NameSignMantissa:
				r.Parts.SignMantissa += t.NBytes()
				r.BF16Bytes += 2 * t.NBytes() // one byte per weight
			case name == encoder.NameEncodedExponent:
				r.Parts.Exponents += t.NBytes()
				units = append(units, path)
			}
		}
	}
	return units
}

// describeUnits describes several units at a time. Each gets its share of the runs.
func describeUnits(ctx context.Context, d *model.DF11, paths []string) ([]Unit, error) {
	runs := localRuns
	if d.Remote() {
		runs = remoteRuns
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(unitsAtOnce)
	units := make([]Unit, len(paths))
	for i, path := range paths {
		g.Go(func() error {
			err := d.CheckForm(path)
			if err == nil {
				units[i], err = describeUnit(gctx, path, d.SparseArrays(gctx, path),
					int64(max(2, runs/len(paths))))
			}
			if err != nil {
				return fmt.Errorf("module %s: %w", path, err)
			}
			return nil
		})
	}
	return units, g.Wait()
}

// describeUnit reads a unit's tables and decodes at most runs runs of its weights.
func describeUnit(ctx context.Context, path string, a verify.Arrays, runs int64) (Unit, error) {
	x := Unit{Path: path, Weights: a[encoder.NameSignMantissa].Size(),
		NBits: 8 * a[encoder.NameEncodedExponent].Size()}
	for _, s := range a {
		x.Bytes += s.Size()
	}
	luts := a[encoder.NameLUTs] // the last row holds the lengths
	if err := streams.ReadFull(luts, x.CodeLengths[:], luts.Size()-256); err != nil {
		return x, err
	}
	opened, err := verify.Open(a, nil)
	if err != nil {
		return x, err
	}
	if err := countRuns(ctx, opened, runs, &x.Histogram); err != nil {
		return x, err
	}
	x.Finish()
	return x, nil
}

// countRuns counts the exponents in at most most runs of a unit's weights, spread over the unit.
func countRuns(ctx context.Context, u *verify.Unit, most int64, h *Histogram) error {
	buf := make([]byte, 2*runElems)
	runs := (u.NElems() + runElems - 1) / runElems
	picked := min(runs, most)
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
