package verify

import (
	"errors"
	"time"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
)

// gpuSlot is memory for one piece: on the device, and pinned on the host, with the same layout.
type gpuSlot struct {
	gpu    *GPU
	memory cuda.Ptr
	host   cuda.Pinned
	stream cuda.Stream // one per slot, so that no upload waits for the download of another slot
	done   cuda.Event
	tables uint64 // gpuJob.id of the unit whose tables are in the slot, or 0
}

// allocate allocates what a slot needs. The device's Close frees it.
func (s *gpuSlot) allocate(c *cuda.Context, size int) (err error) {
	if s.stream, err = c.NewStream(); err != nil {
		return err
	}
	if s.memory, err = c.Alloc(size); err != nil {
		return err
	}
	if s.host, err = c.AllocPinned(size); err != nil {
		return err
	}
	s.done, err = c.NewEvent()
	return err
}

// decode sends a piece from the slot's pinned memory through the device and waits. Every error is a
// fault of the device.
func (s *gpuSlot) decode(p *gpuPiece, unit uint64) error {
	if err := s.enqueue(p, unit); err != nil {
		return err
	}
	return s.wait()
}

// poison fills the output on the device before decoding. No unit can hold exponent 255
// (docs/format.md §9), so weights that the kernel leaves out show, no matter what the slot held
// before.
const poison = 0xff

// enqueue sends a piece from the slot's pinned memory through the device. unit is the gpuJob.id.
func (s *gpuSlot) enqueue(p *gpuPiece, unit uint64) error {
	return s.gpu.device.Do(func(c *cuda.Context) error {
		if err := s.upload(c, p); err != nil {
			return err
		}
		if s.tables != unit {
			if err := s.buildTables(c, p); err != nil {
				return err
			}
			s.tables = unit
		}
		if err := c.Fill(s.memory+cuda.Ptr(p.out), poison, 2*p.nElems, s.stream); err != nil {
			return err
		}
		if err := s.launch(c, p); err != nil {
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

// weights returns where a piece's decoded weights arrive.
func (s *gpuSlot) weights(p *gpuPiece) cuda.Pinned { return s.host[p.out : p.out+2*p.nElems] }

var errSilent = errors.New("the GPU doesn't answer")

// pieceLimit is how long a piece may take. It needs milliseconds, or a few seconds on a GPU that
// others keep busy.
const pieceLimit = time.Minute

// leastPause is how long wait sleeps at first between two looks. A large piece takes milliseconds.
const leastPause = 100 * time.Microsecond

// wait returns when the device has finished the slot's piece. It polls instead of waiting in the
// driver, because the other slots need the device's thread. It ignores ctx, because the device is
// still writing. If the device takes longer than any piece can, that's a fault. wait counts only
// the time it sleeps.
func (s *gpuSlot) wait() error {
	for waited := time.Duration(0); ; {
		var reached bool
		err := s.gpu.device.Do(func(c *cuda.Context) (err error) {
			reached, err = c.Reached(s.done)
			return err
		})
		switch {
		case err != nil:
			return err // the fault; reached is undefined
		case reached:
			return nil
		case s.gpu.isLost():
			return errLost
		case waited >= pieceLimit:
			return errSilent
		}
		pause := max(leastPause, waited/16)
		s.gpu.opt.sleep(pause)
		waited += pause
	}
}
