package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
	"github.com/df11-convert/df11-convert/verify/kernel"
)

// GPU decodes units on one GPU of this machine. Goroutines may share it.
type GPU struct {
	opt      GPUOptions
	device   *cuda.Device
	describe string        // describes the device
	free     chan *gpuSlot // idle slots

	build, decode cuda.Function // our kernel's entry points

	nJobs atomic.Uint64

	losing sync.Once
	lost   chan struct{} // closed at the first fault; nothing on the device may be used after that
	cause  error         // that fault; set before lost is closed
}

const (
	contextMemory = 256 << 20 // of the host, for driver and context; assumed, not measured
	leastHost     = contextMemory + nSlots*4<<20
)

// OpenGPU prepares the first GPU that works: driver, context, kernel, and buffers. With GPUOff it
// returns nil. Without a usable GPU it logs why and returns nil, or ErrNoGPU with GPURequire. If
// opt.Host is too small, it doesn't start the driver.
func OpenGPU(opt GPUOptions) (*GPU, error) {
	opt = opt.withDefaults()
	if opt.Mode == GPUOff {
		return nil, nil
	}
	if opt.Host != 0 {
		if opt.Host < leastHost {
			err := fmt.Errorf("the memory budget leaves %d MiB for a GPU, but driver and "+
				"buffers take at least %d MiB", max(0, opt.Host>>20), leastHost>>20)
			return opt.without(opt.Log.Info, err)
		}
		opt.slotSize = min(opt.slotSize, int((opt.Host-contextMemory)/nSlots))
	}
	driver, err := cuda.Open(opt.driver)
	if errors.Is(err, cuda.ErrNone) {
		return opt.without(opt.Log.Info, err)
	} else if err != nil {
		return opt.without(opt.Log.Warn, err)
	}
	var first error
	for i := range driver.Count() {
		g, err := openDevice(driver, i, opt)
		if err == nil {
			return g, nil
		}
		opt.Log.Warn("skipping a GPU", "device", i, "err", err)
		first = cmp.Or(first, err)
	}
	return opt.without(opt.Log.Info, first)
}

// openDevice prepares device i.
func openDevice(driver *cuda.Driver, i int, opt GPUOptions) (*GPU, error) {
	device, err := driver.OpenDevice(i)
	if err != nil {
		return nil, err
	}
	info := device.Info()
	g := &GPU{opt: opt, device: device, free: make(chan *gpuSlot, nSlots),
		lost: make(chan struct{})}
	g.describe = fmt.Sprintf("%s, sm_%d%d", info.Name, info.Major, info.Minor)
	err = device.Do(func(c *cuda.Context) error {
		if err := g.loadKernel(c, info); err != nil {
			return err
		}
		for range nSlots {
			s := &gpuSlot{gpu: g}
			if err := s.allocate(c, opt.slotSize); err != nil {
				return err
			}
			g.free <- s
		}
		return nil
	})
	if err != nil {
		g.Close()
		return nil, fmt.Errorf("%s: %w", info.Name, err)
	}
	return g, nil
}

// Describe returns texts for the manifest.
func (g *GPU) Describe() (decoder, device string) {
	if !g.isOpen() {
		return "", ""
	}
	return fmt.Sprintf("df11-convert, PTX %s, sha256 %x", kernel.Version,
		sha256.Sum256([]byte(kernel.PTX()))), g.describe
}

// Host returns how many bytes of the host's memory the GPU takes: pinned buffers, plus the assumed
// need of the driver.
func (g *GPU) Host() int64 {
	if !g.isOpen() {
		return 0
	}
	return contextMemory + nSlots*int64(g.opt.slotSize)
}

// Close releases the GPU. No Compare may be running. After a fault it releases nothing, because
// that might wait forever.
func (g *GPU) Close() {
	if g.isOpen() && !g.isLost() {
		g.device.Close()
	}
}

// isOpen reports whether OpenGPU has made the GPU.
func (g *GPU) isOpen() bool { return g != nil && g.device != nil }

// errLost reports that the device has failed.
var errLost = errors.New("the device is lost")

func (g *GPU) isLost() bool {
	select {
	case <-g.lost:
		return true
	default:
		return false
	}
}

// acquire waits for a free slot. It returns errLost once the device has failed.
func (g *GPU) acquire(ctx context.Context) (*gpuSlot, error) {
	if g.isLost() {
		return nil, errLost
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-g.lost:
		return nil, errLost
	case s := <-g.free:
		return s, nil
	}
}

// giveUp ends the use of the device. A fault breaks its context, and the contents of the slots are
// unknown.
func (g *GPU) giveUp(fault error) {
	g.losing.Do(func() {
		g.cause = fmt.Errorf("%s: %w", g.describe, fault)
		if g.opt.Mode != GPURequire {
			g.opt.Log.Warn("giving up the GPU, decoding on the CPU from now on", "device",
				g.describe, "err", fault)
		}
		close(g.lost)
	})
}
