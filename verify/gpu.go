package verify

import (
	"cmp"
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

// ErrGPULost says that the GPU has had a fault and is not used again. No unit is to blame, and the
// caller may go on without it. If a GPU is required, the error is ErrNoGPU instead.
var ErrGPULost = errors.New("the GPU is lost")

const (
	nSlots = 4 // pieces at a time: one is read, one decoded, one compared, one waits
	// bytes of a piece; on an H100 four of them are 1.2 times as fast as three of 64 MiB
	maxSlot = 48 << 20
)

// GPUOptions tell OpenGPU what to use. The zero value works. Buffers take at most 192 MiB of the
// GPU's memory, and as much pinned memory of the host, beside what the driver takes.
type GPUOptions struct {
	Mode GPUMode // "" is GPUAuto
	// bytes of the host's memory, [GPU.Host] tells how much is taken; 0 means no bound
	Host int64
	Log  *slog.Logger // nil discards

	// For tests.
	driver   string              // path of the driver's library
	kernel   gpuKernel           // in place of ours
	slotSize int                 // bytes of a slot at most
	sleep    func(time.Duration) // in place of time.Sleep
}

// withDefaults replaces zero values.
func (o GPUOptions) withDefaults() GPUOptions {
	if o.kernel == nil {
		o.kernel = ourKernel
	}
	if o.sleep == nil {
		o.sleep = time.Sleep
	}
	o.slotSize = cmp.Or(o.slotSize, maxSlot)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// without is the result of OpenGPU if no GPU is used. log warns if there seems to be one.
func (o GPUOptions) without(log func(msg string, args ...any), reason error) (*GPU, error) {
	if o.Mode == GPURequire {
		return nil, fmt.Errorf("%w: %w", ErrNoGPU, reason)
	}
	log("decoding on the CPU only", "reason", reason)
	return nil, nil
}
