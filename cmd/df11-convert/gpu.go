package main

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/verify"
)

// gpuFlags choose whether a GPU decodes everything a second time. The default mode is auto.
type gpuFlags struct{ mode string }

func (f *gpuFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.mode, "gpu", cmp.Or(f.mode, string(verify.GPUAuto)),
		"`when` to decode on the GPU too: auto (if there's one), require, or off")
}
