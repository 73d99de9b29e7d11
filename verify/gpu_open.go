//go:build !nogpu

package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
)

// GPU decodes units on the machine's GPUs. It is safe for concurrent use.
type GPU struct {
	opt     GPUOptions
	kernel  *gpuKernel
	devices []*gpuDevice

	free chan *gpuSlot // slots of all devices that nobody uses
	dead chan struct{} // closed when every device has been given up

	nJobs atomic.Uint64

	mu    sync.Mutex
	alive int
	cause error // why the last device was given up
}

// OpenGPU gets the GPUs ready: driver, contexts, kernel, memory. With GPUOff the GPU is nil. Where no GPU can be used,
// it is nil too and the log says so once; with GPURequire the error is ErrNoGPU instead. If Host has no room for any
// GPU, the driver is left alone. An unusable kernel file and too little Memory are always errors.
func OpenGPU(opt GPUOptions) (*GPU, error) {
	opt, err := opt.withDefaults()
	if err != nil || opt.Mode == GPUOff {
		return nil, err
	}
	if opt.slotSize == 0 {
		if opt.slotSize, err = slotSize(opt.Memory); err != nil {
			return nil, err
		}
	}
	k, err := readKernel(opt.Kernel, opt.nShared)
	if err != nil {
		return nil, err
	}
	if _, err := opt.divideHost(1); err != nil && cuda.Find(opt.driver) == nil {
		return opt.withoutUse(err)
	}
	driver, err := cuda.Open(opt.driver)
	if errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.ErrNoDevice) {
		return opt.without(err)
	} else if err != nil {
		return opt.withoutUse(err)
	}
	n, err := opt.divideHost(driver.Count())
	if err != nil {
		return opt.withoutUse(err)
	}
	if n < driver.Count() {
		opt.Log.Warn("leaving out GPUs, the memory budget has no room for all", "used", n, "there", driver.Count())
	}
	g := &GPU{opt: opt, kernel: k, dead: make(chan struct{}), free: make(chan *gpuSlot, n*nSlots)}
	if err := g.openDevices(driver, n); err != nil {
		if e, ok := errors.AsType[*cuda.Error](err); ok && k.path != "" && e.RefusedPTX() {
			return nil, err
		}
		return opt.without(err)
	}
	return g, nil
}

// openDevices opens the usable devices, n at most. Without any, the error is that of the first device.
func (g *GPU) openDevices(driver *cuda.Driver, n int) error {
	var first error
	for i := 0; i < driver.Count() && len(g.devices) < n; i++ {
		d, err := openGPUDevice(driver, i, g.kernel, &g.opt)
		if err != nil {
			g.opt.Log.Warn("leaving out a GPU", "device", i, "err", err)
			first = cmp.Or(first, err)
			continue
		}
		g.devices = append(g.devices, d)
		for _, s := range d.slots {
			g.free <- s
		}
	}
	if g.alive = len(g.devices); g.alive == 0 {
		return first
	}
	return nil
}

// Describe names the kernel and the devices that have decoded anything, each kind once, for the manifest.
func (g *GPU) Describe() (kernel string, devices []string) {
	for _, d := range g.devices {
		if d.used.Load() && !slices.Contains(devices, d.describe) {
			devices = append(devices, d.describe)
		}
	}
	return g.kernel.describe, devices
}

// Host is how many bytes of the host's memory the GPUs take: pinned buffers, and the assumed need of the driver.
func (g *GPU) Host() int64 {
	return int64(len(g.devices)) * (contextMemory + nSlots*int64(g.opt.slotSize))
}

// Close gives the GPUs back. No Compare may be running.
func (g *GPU) Close() error {
	var errs []error
	for _, d := range g.devices {
		errs = append(errs, d.close())
	}
	return errors.Join(errs...)
}

// errNoDevice says that every device has been given up.
var errNoDevice = errors.New("no device")

// acquire waits for a slot of a working device.
func (g *GPU) acquire(ctx context.Context) (*gpuSlot, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-g.dead:
			return nil, errNoDevice
		case s := <-g.free:
			if !s.device.lost.Load() {
				return s, nil
			}
		}
	}
}

// release gives a slot back.
func (g *GPU) release(s *gpuSlot) { g.free <- s }

// giveUp stops using a device: a fault of a launch spoils the context, and the state of its slots is unknown.
func (g *GPU) giveUp(d *gpuDevice, fault error) {
	if d.lost.Swap(true) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alive--
	if g.alive > 0 {
		g.opt.Log.Warn("giving up a GPU, going on with the others", "device", d.describe, "left", g.alive, "err", fault)
		return
	}
	g.cause = fmt.Errorf("%s: %w", d.describe, fault)
	if g.opt.Mode != GPURequire {
		g.opt.Log.Warn("giving up the last GPU, decoding on the CPU only from here on", "device", d.describe, "err", fault)
	}
	close(g.dead)
}
