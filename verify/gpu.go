package verify

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// GPUMode says how much a GPU is wanted.
type GPUMode string

// The modes of GPUOptions.
const (
	GPUAuto    GPUMode = "auto"    // if there is one
	GPURequire GPUMode = "require" // no GPU is an error
	GPUOff     GPUMode = "off"     // never; the driver is not even loaded
)

// ErrNoGPU says that this machine, or this build, cannot decode on a GPU. No unit is to blame.
var ErrNoGPU = errors.New("no GPU")

// ErrGPULost says that the GPU has had a fault and is not used again. No unit is to blame, and the caller may go on without it. If
// a GPU is required, the error is ErrNoGPU instead.
var ErrGPULost = errors.New("the GPU is lost")

const (
	nSlots  = 4        // pieces at a time: one is read, one decoded, one compared, one waits
	maxSlot = 48 << 20 // bytes of a piece; on an H100 four of them are 1.2 times as fast as three of 64 MiB
)

// GPUOptions tell OpenGPU what to use. The zero value works. Buffers take at most 192 MiB of the GPU's memory, and as much pinned
// memory of the host, beside what the driver takes.
type GPUOptions struct {
	Mode GPUMode      // "" means GPUAuto
	Host int64        // bytes of the host's memory, [GPU.Host] tells how much is taken; 0 means no bound
	Log  *slog.Logger // nil discards

	// For tests.
	driver   string              // path of the driver's library
	kernel   gpuKernel           // in place of ours
	slotSize int                 // bytes of a slot at most
	sleep    func(time.Duration) // in place of time.Sleep
}

// withDefaults replaces zero values and checks the mode.
func (o GPUOptions) withDefaults() (GPUOptions, error) {
	switch o.Mode {
	case "":
		o.Mode = GPUAuto
	case GPUAuto, GPURequire, GPUOff:
	default:
		return o, fmt.Errorf("gpu mode %q; auto, require and off are possible", o.Mode)
	}
	if o.kernel == nil {
		o.kernel = ourKernel
	}
	if o.slotSize == 0 {
		o.slotSize = maxSlot
	}
	if o.sleep == nil {
		o.sleep = time.Sleep
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// without is the result of OpenGPU if there is no GPU.
func (o GPUOptions) without(reason error) (*GPU, error) {
	if o.Mode == GPURequire {
		return nil, fmt.Errorf("%w: %w", ErrNoGPU, reason)
	}
	o.Log.Info("no GPU, decoding on the CPU only", "reason", reason)
	return nil, nil
}
