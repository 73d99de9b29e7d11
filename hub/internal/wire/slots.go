package wire

import (
	"context"
	"io"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Transfers is how many ranges of files travel at once in each direction: enough for a storage that
// limits each connection, and few enough for a thin line to keep each of them alive.
const Transfers = 16

// Take waits for one of a number of places, first come, first served. It returns the cause of ctx
// if that ends first.
func Take(ctx context.Context, places *semaphore.Weighted) error {
	if places.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Slot is the right of one transfer to run. The transfer has it during a try, not while it waits
// for the next one. A nil slot belongs to a request that needs none.
type Slot struct {
	Of   *semaphore.Weighted
	held bool
}

// Take waits for the slot, unless the transfer has it.
func (s *Slot) Take(ctx context.Context) error {
	if s.held {
		return nil
	}
	err := Take(ctx, s.Of)
	s.held = err == nil
	return err
}

func (s *Slot) giveBack() {
	if s != nil && s.held {
		s.held = false
		s.Of.Release(1)
	}
}

// bulkReader notices file bytes, and lets them through at a rate.
type bulkReader struct {
	w     *watch // over the request that the bytes belong to
	limit *rate.Limiter
	r     io.Reader
}

func (b *bulkReader) Read(p []byte) (int, error) {
	limited := b.limit.Burst() > 0
	if limited {
		p = p[:min(b.limit.Burst(), len(p))] // a low rate stays smooth
	}
	n, err := b.r.Read(p)
	if n > 0 {
		b.w.t.moved.Store(true)
	}
	if limited && n > 0 {
		clock := b.w.t.Opt.Clock
		now := clock.Now()
		wait := b.limit.ReserveN(now, n).DelayFrom(now)
		if waitErr := clock.Sleep(b.w.ctx, wait); err == nil {
			err = waitErr
		}
	}
	return n, err
}
