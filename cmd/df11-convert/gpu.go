package main

import (
	"cmp"
	"errors"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/verify"
)

// gpuFlags choose whether a GPU decodes everything a second time. The default mode is auto.
type gpuFlags struct {
	mode string
	gpu  *verify.GPU // set by open
}

func (f *gpuFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.mode, "gpu", cmp.Or(f.mode, string(verify.GPUAuto)),
		"`when` to decode on the GPU too: auto (if there's one), require, or off")
}

// open starts the GPU and adds it to means. It takes its host memory out of memory. Without a GPU it
// does nothing, unless --gpu requires one.
func (f *gpuFlags) open(u *ui, memory *budget.Memory, means *forward.Means) error {
	if !hasGPUs {
		return nil
	}
	g, err := verify.OpenGPU(verify.GPUOptions{Mode: verify.GPUMode(f.mode), Host: memory.GPU,
		Log: u.log()})
	if errors.Is(err, verify.ErrNoGPU) {
		return hinted{err, "leave out --gpu: the check on the CPU needs none"}
	}
	if err != nil || g == nil {
		return err
	}
	f.gpu, means.GPU = g, g
	*memory = memory.BesideGPU(g.Host())
	return nil
}

func (f *gpuFlags) close() {
	if hasGPUs && f.gpu != nil {
		f.gpu.Close()
	}
}
