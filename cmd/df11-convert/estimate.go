package main

import (
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
