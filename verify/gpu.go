package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// GPUMode says how much a GPU is wanted.
type GPUMode string

// The modes of GPUOptions.
const (
	GPUAuto    GPUMode = "auto"    // where there is one
	GPURequire GPUMode = "require" // no GPU is an error
	GPUOff     GPUMode = "off"     // never; the driver is not even loaded
)

// ParseGPUMode reads a mode as users write it.
func ParseGPUMode(s string) (GPUMode, error) {
	switch m := GPUMode(s); m {
	case GPUAuto, GPURequire, GPUOff:
		return m, nil
	}
	return "", fmt.Errorf("gpu mode %q; auto, require and off are possible", s)
}

// ErrNoGPU says that this machine, or this build, cannot decode on a GPU. It is no fault of the
// units.
var ErrNoGPU = errors.New("no GPU")

// GPUOptions tell OpenGPU what to use. The zero value works.
type GPUOptions struct {
	Mode   GPUMode      // "" means GPUAuto
	Memory int64        // bytes on each GPU; 0 means 512 MiB
	Kernel string       // path of a PTX file with the official kernel's interface; "" means ours
	Log    *slog.Logger // nil discards
}

// GPU decodes units on the machine's GPUs. It is safe for concurrent use.
type GPU struct{}

// OpenGPU gets the GPUs ready.
func OpenGPU(opt GPUOptions) (*GPU, error) {
	if opt.Mode == GPURequire {
		return nil, ErrNoGPU
	}
	return nil, nil
}

// Compare decodes a unit on the GPU.
func (g *GPU) Compare(ctx context.Context, a Arrays, nElems int64, src io.ReaderAt, opt CompareOptions) error {
	return ErrNoGPU
}

// Describe names the kernel and the devices, for the manifest.
func (g *GPU) Describe() (kernel string, devices []string) { return "", nil }

// Close gives the GPUs back.
func (g *GPU) Close() error { return nil }
