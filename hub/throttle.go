package hub

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// throttle is a token bucket for bytes. The zero rate lets everything through.
type throttle struct {
	clock Clock
	rate  int64 // bytes per second

	mu   sync.Mutex
	paid time.Time // the moment up to which bytes are accounted for
}

// burst bounds the unused time that may be saved up.
const burst = 100 * time.Millisecond

// take returns when n bytes may have passed.
func (t *throttle) take(ctx context.Context, n int) error {
	if t.rate <= 0 || n == 0 {
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
	if t.rate <= 0 {
		return p
	}
	return p[:min(max(t.rate/10, 1), int64(len(p)))]
}

// bulkReader lets file bytes through at the throttle's rate, and counts them.
type bulkReader struct {
	ctx      context.Context //nolint:containedctx // of the one request that this body belongs to
	throttle *throttle
	count    *atomic.Int64
	r        io.Reader
}

func (b *bulkReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(b.throttle.piece(p))
	b.count.Add(int64(n))
	if waitErr := b.throttle.take(b.ctx, n); waitErr != nil && err == nil {
		err = waitErr
	}
	return n, err
}
