package verify

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// GPUMode says whether to use a GPU.
type GPUMode string

// The modes of GPUOptions.
const (
	GPUAuto    GPUMode = "auto"    // use a GPU if there is one
	GPURequire GPUMode = "require" // without a GPU, fail
	GPUOff     GPUMode = "off"     // never use one; don't even load the driver
)

// ErrNoGPU reports that this machine, or this build, can't decode on a GPU. It says nothing about
// the unit.
var ErrNoGPU = errors.New("no GPU")

// ErrGPULost reports that the GPU has failed and won't be used again. It says nothing about the
// unit, and you may go on without the GPU. If a GPU is required, the error is ErrNoGPU instead.
var ErrGPULost = errors.New("the GPU is lost")

const (
	nSlots = 4 // pieces at a time: one is being read, one decoded, one compared, one waits
	// bytes of a piece; on an H100 four of them are 1.2 times as fast as three of 64 MiB
	maxSlot = 48 << 20
)

// GPUOptions configure OpenGPU. The zero value works. Buffers take at most 192 MiB of the GPU's
// memory and as much pinned memory of the host, in addition to what the driver takes.
type GPUOptions struct {
	Mode GPUMode // "" is GPUAuto
	// limit on the host's memory in bytes, 0: no limit; [GPU.Host] returns how much is in use
	Host int64
	Log  *slog.Logger // nil discards

	// For tests.
	driver   string              // path of the driver's library
	slotSize int                 // largest slot, in bytes
	sleep    func(time.Duration) // instead of time.Sleep
}

// withDefaults returns o with defaults for its zero values.
func (o GPUOptions) withDefaults() GPUOptions {
	if o.sleep == nil {
		o.sleep = time.Sleep
	}
	o.slotSize = cmp.Or(o.slotSize, maxSlot)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// without returns OpenGPU's result if it uses no GPU. Pass a log function that warns if there seems
// to be a GPU.
func (o GPUOptions) without(log func(msg string, args ...any), reason error) (*GPU, error) {
	if o.Mode == GPURequire {
		return nil, fmt.Errorf("%w: %w", ErrNoGPU, reason)
	}
	log("decoding on the CPU only", "reason", reason)
	return nil, nil
}
