package wire

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Transfers is how many ranges of files travel at once in each direction: enough for a storage that
// limits each connection, and few enough for a thin line to keep each of them alive.
const Transfers = 16

// Slots bound how many run at once. Unlike a mutex, a slot can be given up with ctx.
type Slots chan struct{}

// take waits for a slot. It returns the cause of ctx if that ends first.
func (s Slots) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Hold runs fn in a slot.
func (s Slots) Hold(ctx context.Context, fn func() error) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer func() { <-s }()
	return fn()
}

// Slot is the right of one transfer to run. The transfer has it during a try, not while it waits
// for the next one. A nil slot belongs to a request that needs none.
type Slot struct {
	Of   Slots
	held bool
}

// Take waits for the slot, unless the transfer has it.
func (s *Slot) Take(ctx context.Context) error {
	if s.held {
		return nil
	}
	err := s.Of.take(ctx)
	s.held = err == nil
	return err
}

func (s *Slot) giveBack() {
	if s != nil && s.held {
		s.held = false
		<-s.Of
	}
}

// throttle is a token bucket for the bytes of all that share it.
type throttle struct {
	mu   sync.Mutex
	paid time.Time // the moment up to which bytes are accounted for
}

// burst bounds the unused time that may be saved up.
const burst = 100 * time.Millisecond

// take says how long to wait, at so many bytes per second, until n bytes may have passed.
func (t *throttle) take(now time.Time, rate int64, n int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if oldest := now.Add(-burst); t.paid.Before(oldest) {
		t.paid = oldest
	}
	t.paid = t.paid.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
	return t.paid.Sub(now)
}

// bulkReader notices file bytes, and lets them through at a rate.
type bulkReader struct {
	ctx      context.Context //nolint:containedctx // of the one request that this body belongs to
	rate     int64           // bytes per second; 0 is no limit
	clock    Clock
	throttle *throttle
	moved    *atomic.Bool
	r        io.Reader
}

func (b *bulkReader) Read(p []byte) (int, error) {
	if b.rate > 0 {
		p = p[:min(max(b.rate/10, 1), int64(len(p)))] // a low rate stays smooth
	}
	n, err := b.r.Read(p)
	if n > 0 {
		b.moved.Store(true)
	}
	if b.rate > 0 && n > 0 {
		if waitErr := b.clock.Sleep(b.ctx, b.throttle.take(b.clock.Now(), b.rate, n)); err == nil {
			err = waitErr
		}
	}
	return n, err
}
