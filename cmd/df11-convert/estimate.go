package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/estimate"
	"github.com/df11-convert/df11-convert/internal/human"
)

// estimateFlags say how much of the weights may be read.
type estimateFlags struct {
	sample sizeFlag // -1: a share of the model
}

func (f *estimateFlags) register(p *pflag.FlagSet) {
	f.sample = -1
	p.Var(&f.sample, "sample-bytes", "read at most this much of the weights for the estimate; 0 reads none (default 1 % or 8 MB, whichever is more, at most 64 MiB)")
}

// bytes is how much may be read of a planned source, which it tells the user if the source is remote.
func (f *estimateFlags) bytes(u *ui, o *opened) int64 {
	n := int64(f.sample)
	if n < 0 {
		n = estimate.DefaultSampleBytes(o.model)
	}
	if n > 0 && !o.model.Local {
		u.say("sampling at most %s of the weights (--sample-bytes 0 turns this off)", human.Bytes(n))
	}
	return n
}

// estimate samples the weights of a planned source.
func (f *estimateFlags) estimate(ctx context.Context, u *ui, o *opened) (*estimate.Estimate, error) {
	e, err := estimate.Sample(ctx, o.source, o.plan, f.bytes(u, o))
	if err != nil {
		return nil, fmt.Errorf("estimate %s: %w", o.model.ID, err)
	}
	return e, nil
}

// forecast is what the command plan shows: a plan, the estimated size of its result, and what making it takes.
type forecast struct {
	*opened
	size      *estimate.Estimate
	needs     estimate.Needs
	disk      int64 // the budget; 0 is none
	bandwidth int64 // of the line, bytes per second
}

// seconds is the time that n bytes take on the line.
func (f *forecast) seconds(n int64) float64 { return float64(n) / float64(f.bandwidth) }

// timeOf is that time for people, a second at least.
func (f *forecast) timeOf(n int64) string {
	const most = 1e9 // seconds, which a Duration holds
	return timeText(time.Duration(max(1, min(f.seconds(n), most)) * float64(time.Second)))
}

// basis says in words what an estimate rests on.
func basis(e *estimate.Estimate) string {
	switch {
	case e.Exact:
		return "exact: all weights were read"
	case e.Samples == 0:
		return "nothing was sampled: the usual ratio of trained weights is assumed"
	}
	return fmt.Sprintf("estimated from %s of the weights in %s", human.Bytes(e.SampledBytes), count(e.Samples, "range"))
}
