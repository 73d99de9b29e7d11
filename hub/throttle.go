package hub

import (
	"context"
	"io"
	"sync"
	"time"
)

// throttle is a token bucket for bytes: take returns when n bytes may have
// passed. The zero rate lets everything through.
type throttle struct {
	clock Clock
	rate  int64 // bytes per second

	mu   sync.Mutex
	paid time.Time // the moment up to which bytes are accounted for
}

// burst is how much unused time may be saved up.
const burst = 100 * time.Millisecond

func (t *throttle) take(ctx context.Context, n int) error {
	if t == nil || t.rate <= 0 || n == 0 {
		return nil
	}
	t.mu.Lock()
	now := t.clock.Now()
	if oldest := now.Add(-burst); t.paid.Before(oldest) {
		t.paid = oldest
	}
	t.paid = t.paid.Add(time.Duration(float64(n) / float64(t.rate) * float64(time.Second)))
	d := t.paid.Sub(now)
	t.mu.Unlock()
	if d <= 0 {
		return nil
	}
	return t.clock.Sleep(ctx, d)
}

// piece caps one read so that a slow limit stays smooth.
func (t *throttle) piece(p []byte) []byte {
	if t == nil || t.rate <= 0 {
		return p
	}
	limit := int(min(max(t.rate/10, 1), int64(len(p))))
	return p[:limit]
}

// throttledReader lets a body through at the throttle's rate.
type throttledReader struct {
	ctx context.Context //nolint:containedctx // of the one request that this body belongs to
	t   *throttle
	r   io.Reader
}

func (r *throttledReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(r.t.piece(p))
	if waitErr := r.t.take(r.ctx, n); waitErr != nil && err == nil {
		err = waitErr
	}
	return n, err
}
