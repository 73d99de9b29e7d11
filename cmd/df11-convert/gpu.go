package main

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/compare"
	"github.com/df11-convert/df11-convert/verify"
)

// gpuFlags choose the second decoder.
type gpuFlags struct {
	mode string
	gpu  *verify.GPU // set by open
}

func (f *gpuFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.mode, "gpu", "auto", "`when` to decode on the GPU too: auto (if there is one), require, or off")
	group(p, groupGPU, "gpu")
}

// open starts the GPU verifier, which takes host memory from the other parts; nil if no GPU is there and none is required.
func (f *gpuFlags) open(u *ui, memory *budget.Memory) (compare.GPU, error) {
	g, err := verify.OpenGPU(verify.GPUOptions{Mode: verify.GPUMode(f.mode), Host: memory.GPU, Log: u.log()})
	if errors.Is(err, verify.ErrNoGPU) {
		return nil, hinted{err, "the CPU check needs no GPU: leave --gpu at auto, or set it to off"}
	}
	if err != nil || g == nil {
		return nil, err
	}
	f.gpu = g
	*memory = memory.BesideGPU(g.Host())
	return g, nil
}

func (f *gpuFlags) close() {
	if f.gpu != nil {
		f.gpu.Close()
	}
}
