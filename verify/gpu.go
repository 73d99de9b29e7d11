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
	GPUAuto    GPUMode = "auto"    // where there is one
	GPURequire GPUMode = "require" // no GPU is an error
	GPUOff     GPUMode = "off"     // never; the driver is not even loaded
)

// ErrNoGPU says that this machine, or this build, cannot decode on a GPU. No unit is to blame.
var ErrNoGPU = errors.New("no GPU")

// ErrGPULost says that every GPU has had a fault. No unit is to blame, and the caller may go on without GPUs: where a
// GPU is required, the error is ErrNoGPU instead.
var ErrGPULost = errors.New("no GPU is left")

// GPUOptions tell OpenGPU what to use. The zero value works.
type GPUOptions struct {
	Mode   GPUMode      // "" means GPUAuto
	Memory int64        // bytes on each GPU, and at most as many of pinned memory on the host; 0 means 512 MiB
	Host   int64        // bytes of the host's memory for all GPUs together, [GPU.Host] tells how much it is; 0 means no bound
	Kernel string       // path of a PTX file with the official kernel's interface; "" means ours
	Log    *slog.Logger // nil discards

	driver   string              // path of the driver's library, for tests
	nShared  int                 // bytes of shared memory that a decoding launch gets at least, for tests
	slotSize int                 // bytes of a slot, for tests
	nDevices int                 // at most, for tests; 0 means all
	sleep    func(time.Duration) // time.Sleep, or none of it for tests
}

// withDefaults replaces zero values and checks the others.
func (o GPUOptions) withDefaults() (GPUOptions, error) {
	switch o.Mode {
	case "":
		o.Mode = GPUAuto
	case GPUAuto, GPURequire, GPUOff:
	default:
		return o, fmt.Errorf("gpu mode %q; auto, require and off are possible", o.Mode)
	}
	if o.Memory == 0 {
		o.Memory = 512 << 20
	}
	if o.sleep == nil {
		o.sleep = time.Sleep
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// without is the result of OpenGPU where no GPU can be used.
func (o GPUOptions) without(reason error) (*GPU, error) {
	if o.Mode == GPURequire {
		return nil, fmt.Errorf("%w: %w", ErrNoGPU, reason)
	}
	o.Log.Info("no GPU, decoding on the CPU only", "reason", reason)
	return nil, nil
}

// withoutUse is without where there seems to be a GPU that cannot be used: a driver that does not work, too little memory.
func (o GPUOptions) withoutUse(reason error) (*GPU, error) {
	if o.Mode == GPURequire {
		return o.without(reason)
	}
	o.Log.Warn("leaving the GPU alone, decoding on the CPU only", "reason", reason)
	return nil, nil
}

// lost is the result of Compare where the last GPU has been lost.
func (o GPUOptions) lost(reason error) error {
	if o.Mode == GPURequire {
		return fmt.Errorf("%w: none is left: %w", ErrNoGPU, reason)
	}
	return fmt.Errorf("%w: %w", ErrGPULost, reason)
}
