package verify

import (
	"errors"
	"fmt"
	"time"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
)

// gpuSlot is room for one piece: on the device, and pinned on the host, with the same layout.
type gpuSlot struct {
	gpu    *GPU
	memory cuda.Ptr
	host   cuda.Pinned
	stream cuda.Stream // its own, so that no upload waits for the download of another slot
	done   cuda.Event
	tables uint64 // gpuJob.id of the unit whose tables are in the slot; 0 is none
}

// allocate makes what a slot needs. The device's Close gives it back.
func (s *gpuSlot) allocate(c *cuda.Context, size int) (err error) {
	if s.stream, err = c.NewStream(); err != nil {
		return err
	}
	if s.memory, err = c.Alloc(size); err != nil {
		return fmt.Errorf("%d bytes on the device: %w", size, err)
	}
	if s.host, err = c.AllocPinned(size); err != nil {
		return fmt.Errorf("%d pinned bytes: %w", size, err)
	}
	s.done, err = c.NewEvent()
	return err
}

// decode puts a piece from the slot's pinned memory through the device and waits. Every error is a
// fault of the device.
func (s *gpuSlot) decode(p *gpuPiece, unit uint64) error {
	if err := s.enqueue(p, unit); err != nil {
		return err
	}
	if err := s.wait(); err != nil {
		return err
	}
	s.gpu.used.Store(true)
	return nil
}

// poison fills the place of a piece's weights on the device before decoding. No unit can hold
// exponent 255 (docs/format.md §9), so weights that the kernel leaves out are seen, whatever the
// slot held before.
const poison = 0xff

// enqueue puts a piece that lies in the slot's pinned memory through the device. unit is the
// gpuJob.id.
func (s *gpuSlot) enqueue(p *gpuPiece, unit uint64) error {
	f := s.gpu.functions
	return s.gpu.device.Do(func(c *cuda.Context) error {
		if err := s.upload(c, p); err != nil {
			return err
		}
		if s.tables != unit {
			if err := f.buildTables(c, s, p); err != nil {
				return err
			}
			s.tables = unit
		}
		if err := c.Fill(s.memory+cuda.Ptr(p.out), poison, 2*p.nElems, s.stream); err != nil {
			return err
		}
		if err := f.launch(c, s, p); err != nil {
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

var errSilent = errors.New("the GPU does not answer")

// pieceLimit is how long a piece may take. It needs milliseconds, on a GPU that others keep busy a
// few seconds.
const pieceLimit = time.Minute

// wait returns when the device has finished the slot's piece. It polls instead of waiting in the
// driver, since the device's thread must stay free for the other slots. The end of ctx does not end
// the wait, because the device still writes. A device that takes longer than any piece can has a
// fault. Only the time slept is counted.
func (s *gpuSlot) wait() error {
	var waited time.Duration
	for pause := 20 * time.Microsecond; ; pause = min(pause*5/4,
		max(500*time.Microsecond, waited/64)) {
		var reached bool
		err := s.gpu.device.Do(func(c *cuda.Context) (err error) {
			reached, err = c.Reached(s.done)
			return err
		})
		switch {
		case err != nil:
			return err // reached may not be read
		case reached:
			return nil
		case s.gpu.isLost():
			return errLost
		case waited >= pieceLimit:
			return errSilent
		}
		s.gpu.opt.sleep(pause)
		waited += pause
	}
}
