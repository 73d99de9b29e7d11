package hub

import (
	"context"
	"io"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// maxTransfers is how many ranges of files travel at once in each direction. That's enough for a
// storage that limits each connection, and few enough to keep each alive on a slow network.
const maxTransfers = 16

// takePlace waits for a place, first come, first served. If ctx ends first, it returns the cause.
func takePlace(ctx context.Context, places *semaphore.Weighted) error {
	if places.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// A bulkReader limits the rate of file bytes.
type bulkReader struct {
	w     *watch // over the bytes' request
	limit *rate.Limiter
	r     io.Reader
}

func (b *bulkReader) Read(p []byte) (int, error) {
	limited := b.limit.Burst() > 0
	if limited {
		p = p[:min(b.limit.Burst(), len(p))] // so that a low rate stays smooth
	}
	n, err := b.r.Read(p)
	if limited && n > 0 {
		clock := b.w.t.opt.Clock
		now := clock.Now()
		wait := b.limit.ReserveN(now, n).DelayFrom(now)
		if waitErr := clock.Sleep(b.w.ctx, wait); err == nil {
			err = waitErr
		}
	}
	return n, err
}
