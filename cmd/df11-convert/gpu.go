package main

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// gpuFlags choose the second decoder.
type gpuFlags struct {
	mode   string
	kernel string
	memory sizeFlag
	gpu    *verify.GPU
}

func (f *gpuFlags) register(p *pflag.FlagSet) {
	f.memory = 512 << 20
	p.StringVar(&f.mode, "gpu", "auto", "decode on the GPU too: auto (if there is one), require, or off")
	p.StringVar(&f.kernel, "kernel", "", "PTX file to decode with, such as the official decode.ptx, instead of ours")
	p.Var(&f.memory, "gpu-memory", "memory to use on each GPU")
}

// open starts the GPU verifier within host bytes of the host's memory, 0 for no bound; nil where there is none and none
// is required.
func (f *gpuFlags) open(u *ui, host int64) (pipeline.GPU, error) {
	mode, err := verify.ParseGPUMode(f.mode)
	if err != nil {
		return nil, usageError{err}
	}
	g, err := verify.OpenGPU(verify.GPUOptions{Mode: mode, Memory: int64(f.memory), Host: host, Kernel: f.kernel, Log: u.log()})
	if errors.Is(err, verify.ErrNoGPU) {
		return nil, hinted{err, "the CPU check needs no GPU: leave --gpu at auto, or set it to off"}
	}
	if err != nil {
		return nil, err
	}
	if g == nil {
		if mode == verify.GPUAuto {
			u.say("no GPU in use: every weight is compared on the CPU")
		}
		return nil, nil
	}
	f.gpu = g
	return g, nil
}

// host is how much of the host's memory the GPUs take.
func (f *gpuFlags) host() int64 {
	if f.gpu == nil {
		return 0
	}
	return f.gpu.Host()
}

func (f *gpuFlags) close() {
	if f.gpu != nil {
		f.gpu.Close()
	}
}
