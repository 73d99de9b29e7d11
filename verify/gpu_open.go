//go:build !nogpu

package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
)

// GPU decodes units on the machine's GPUs. It is safe for concurrent use.
type GPU struct {
	opt     GPUOptions
	kernel  *gpuKernel
	devices []*gpuDevice

	free chan *gpuSlot // slots of all devices that nobody uses
	dead chan struct{} // closed when every device has been given up

	mu    sync.Mutex
	alive int
	cause error // why the last device was given up
}

// OpenGPU gets the GPUs ready: driver, contexts, kernel, memory. With GPUOff the GPU is nil. Without any
// GPU that can be used it is nil too, which the log is told once, or with GPURequire an error that is
// ErrNoGPU. An unusable kernel file and too little Memory are always errors.
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
	driver, err := cuda.Open(opt.driver)
	if err != nil {
		return opt.without(err)
	}
	g := &GPU{opt: opt, kernel: k, dead: make(chan struct{}), free: make(chan *gpuSlot, driver.Count()*nSlots)}
	if err := g.openDevices(driver); err != nil {
		var e *cuda.Error
		if k.path != "" && errors.As(err, &e) && e.RefusedPTX() {
			return nil, err
		}
		return opt.without(err)
	}
	return g, nil
}

// openDevices takes every device that can be used. The error is the first one's, when there is none.
func (g *GPU) openDevices(driver *cuda.Driver) error {
	var first error
	for i := range driver.Count() {
		d, err := openGPUDevice(driver, i, g.kernel, g.opt.slotSize)
		if err != nil {
			g.opt.Log.Warn("leaving out a GPU", "device", i, "err", err)
			if first == nil {
				first = err
			}
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

// Describe names the kernel and the devices, for the manifest.
func (g *GPU) Describe() (kernel string, devices []string) {
	for _, d := range g.devices {
		devices = append(devices, d.describe)
	}
	return g.kernel.describe, devices
}

// Close gives the GPUs back. No Compare may be running.
func (g *GPU) Close() error {
	var errs []error
	for _, d := range g.devices {
		errs = append(errs, d.close())
	}
	return errors.Join(errs...)
}

// acquire waits for a slot of a device that works.
func (g *GPU) acquire(ctx context.Context) (*gpuSlot, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-g.dead:
			return nil, fmt.Errorf("no GPU is left: %w", g.cause)
		case s := <-g.free:
			if !s.device.lost.Load() {
				return s, nil
			}
		}
	}
}

// release gives a slot back. With a fault of its device the device is given up for good: faults of a
// launch spoil the context, and what a slot still has in flight is unknown.
func (g *GPU) release(s *gpuSlot, fault error) {
	if fault == nil {
		g.free <- s
		return
	}
	if s.device.lost.Swap(true) {
		return
	}
	g.opt.Log.Warn("giving up a GPU", "device", s.device.describe, "err", fault)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.alive--; g.alive == 0 {
		g.cause = fault
		close(g.dead)
	}
}
