//go:build !nogpu

package verify

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
)

const (
	nSlots    = 3        // pieces at a time on a device: one is read, one decoded, one compared
	maxSlot   = 64 << 20 // larger ones are no faster
	slotSlack = 1 << 20  // of the memory, for what is not in slots

	// How long a piece may take. It needs milliseconds, on a GPU that others keep busy a few seconds.
	pieceLimit = 5 * time.Minute
	abandonGPU = 30 * time.Second // behind the end of the context: nobody wants the result any more
)

// What a device takes of the host's memory.
const (
	contextMemory = 256 << 20 // the driver and a context: assumed, not measured
	leastBudget   = contextMemory + nSlots*4<<20
)

// divideHost divides Host among as many devices as fit, with slots as large as it allows. The error: not even one fits.
func (o *GPUOptions) divideHost(nDevices int) (int, error) {
	if o.nDevices > 0 {
		nDevices = min(nDevices, o.nDevices)
	}
	if o.Host == 0 {
		return nDevices, nil
	}
	if o.Host < leastBudget {
		return 0, fmt.Errorf("the memory budget leaves %d MiB for it, and driver and buffers take %d MiB or more", max(0, o.Host>>20), leastBudget>>20)
	}
	n := min(nDevices, int(o.Host/leastBudget))
	o.slotSize = min(o.slotSize, int((o.Host/int64(n)-contextMemory)/nSlots))
	return n, nil
}

// slotSize divides a device's memory.
func slotSize(memory int64) (int, error) {
	size := min((memory-slotSlack)/nSlots, maxSlot)
	if size < minSlot {
		return 0, fmt.Errorf("gpu memory of %d bytes: at least %d are needed", memory, nSlots*minSlot+slotSlack)
	}
	return int(size), nil
}

// gpuDevice is a device that is ready to decode.
type gpuDevice struct {
	*cuda.Device
	describe  string
	functions gpuFunctions
	slots     []*gpuSlot
	sleep     func(time.Duration)
	used      atomic.Bool // a piece was decoded
	lost      atomic.Bool // a fault has happened: nothing may be used any more
}

// gpuSlot is room for one piece: on the device, and pinned on the host, with the same layout.
type gpuSlot struct {
	device *gpuDevice
	memory cuda.Ptr
	host   cuda.Pinned
	stream cuda.Stream // its own, so that no upload waits for the download of another slot
	done   cuda.Event
	tables uint64 // of which unit our kernel's tables are there, by gpuJob.id; 0 is none
}

func openGPUDevice(driver *cuda.Driver, i int, k *gpuKernel, opt *GPUOptions) (*gpuDevice, error) {
	dev, err := driver.OpenDevice(i)
	if err != nil {
		return nil, err
	}
	major, minor := driver.Version()
	info := dev.Info()
	d := &gpuDevice{Device: dev, sleep: opt.sleep}
	d.describe = fmt.Sprintf("%s, sm_%d%d, driver for CUDA %d.%d", info.Name, info.Major, info.Minor, major, minor)
	err = dev.Do(func(c *cuda.Context) (err error) {
		if d.functions, err = k.load(c, driver, info); err != nil {
			return err
		}
		return d.allocate(c, opt.slotSize)
	})
	if err != nil {
		_ = d.close() // err is the first
		return nil, fmt.Errorf("%s: %w", info.Name, err)
	}
	return d, nil
}

// allocate makes the slots.
func (d *gpuDevice) allocate(c *cuda.Context, size int) (err error) {
	for range nSlots {
		s := &gpuSlot{device: d}
		d.slots = append(d.slots, s)
		if s.stream, err = c.NewStream(); err != nil {
			return err
		}
		if s.memory, err = c.Alloc(size); err != nil {
			return fmt.Errorf("%d bytes on the device: %w", size, err)
		}
		if s.host, err = c.AllocPinned(size); err != nil {
			return fmt.Errorf("%d pinned bytes: %w", size, err)
		}
		if s.done, err = c.NewEvent(false); err != nil {
			return err
		}
	}
	return nil
}

// close gives everything back, but nothing after a fault: releasing the context might wait for lost work for ever.
func (d *gpuDevice) close() error {
	if d.lost.Load() {
		d.Abandon()
		return nil
	}
	defer d.Close()
	return d.Do(func(c *cuda.Context) error {
		var errs []error
		for _, s := range d.slots {
			errs = append(errs, s.free(c))
		}
		if d.functions.module != nil {
			errs = append(errs, c.UnloadModule(d.functions.module))
		}
		return errors.Join(errs...)
	})
}

func (s *gpuSlot) free(c *cuda.Context) error {
	var errs []error
	if s.done != 0 {
		errs = append(errs, c.DestroyEvent(s.done))
	}
	if s.host != nil {
		errs = append(errs, c.FreePinned(s.host))
	}
	if s.memory != 0 {
		errs = append(errs, c.Free(s.memory))
	}
	if s.stream != 0 {
		errs = append(errs, c.DestroyStream(s.stream))
	}
	return errors.Join(errs...)
}

// poison fills the place of a piece's weights on the device before decoding. No unit can hold exponent 255
// (docs/format.md §9), so weights that the kernel leaves out are seen, whatever the slot held before.
const poison = 0xff

// enqueue puts a piece that lies in the slot's pinned memory through the device. unit is the gpuJob.id.
func (s *gpuSlot) enqueue(k *gpuKernel, p *gpuPiece, unit uint64) error {
	return s.device.Do(func(c *cuda.Context) error {
		if err := s.upload(c, p); err != nil {
			return err
		}
		if s.tables != unit {
			if err := k.buildTables(c, s, p); err != nil {
				return err
			}
			s.tables = unit
		}
		if err := c.Fill(s.memory+cuda.Ptr(p.out), poison, 2*p.nElems, s.stream); err != nil {
			return err
		}
		if err := k.launch(c, s, p); err != nil {
			return err
		}
		if err := c.CopyToHost(s.weights(p), s.memory+cuda.Ptr(p.out), s.stream); err != nil {
			return err
		}
		return c.Record(s.done, s.stream)
	})
}

// upload copies a piece to the device.
func (s *gpuSlot) upload(c *cuda.Context, p *gpuPiece) error {
	return c.CopyToDevice(s.memory+cuda.Ptr(p.luts), s.host[p.luts:p.luts+p.nUpload], s.stream)
}

// weights is where a piece's decoded weights arrive.
func (s *gpuSlot) weights(p *gpuPiece) cuda.Pinned { return s.host[p.out : p.out+2*p.nElems] }

// errSilent says that a piece takes longer than it can, errGivenUp that another piece has had a fault.
var (
	errSilent  = errors.New("the GPU does not answer")
	errGivenUp = errors.New("the GPU was given up")
)

// wait returns when the device has finished the slot's piece. It polls instead of waiting in the driver, since the device's
// thread must stay free for the other slots. The end of ctx does not end the wait, because the device still writes. A device
// that does not finish soon after that, or takes longer than any piece can, has a fault. Only the time slept is counted.
func (s *gpuSlot) wait(ctx context.Context) error {
	var waited, unwanted time.Duration
	for pause := 20 * time.Microsecond; ; pause = min(pause*5/4, max(500*time.Microsecond, waited/64)) {
		var reached bool
		err := s.device.Do(func(c *cuda.Context) (err error) {
			reached, err = c.Reached(s.done)
			return err
		})
		switch {
		case err != nil:
			return err // reached may not be read
		case reached:
			return nil
		case s.device.lost.Load():
			return errGivenUp
		case waited >= pieceLimit || unwanted >= abandonGPU:
			return errSilent
		}
		s.device.sleep(pause)
		waited += pause
		if ctx.Err() != nil {
			unwanted += pause
		}
	}
}
