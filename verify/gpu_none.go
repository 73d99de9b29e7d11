//go:build nogpu

package verify

import (
	"context"
	"errors"
	"io"
)

// GPU is never to be had in this build.
type GPU struct{}

var errNotBuilt = errors.New("built without GPU support")

type gpuKernel func()

func ourKernel() {}

// OpenGPU finds no GPU: nil for GPUAuto and GPUOff, ErrNoGPU for GPURequire.
func OpenGPU(opt GPUOptions) (*GPU, error) {
	opt, err := opt.withDefaults()
	if err != nil || opt.Mode == GPUOff {
		return nil, err
	}
	return opt.without(errNotBuilt)
}

// Compare is never called: there is no GPU.
func (g *GPU) Compare(context.Context, Arrays, int64, io.ReaderAt, CompareOptions) error {
	return ErrNoGPU
}

// Describe names nothing.
func (g *GPU) Describe() (kernel, device string) { return "", "" }

// Host takes nothing.
func (g *GPU) Host() int64 { return 0 }

// Close does nothing.
func (g *GPU) Close() error { return nil }
