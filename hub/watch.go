package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// watch ends one request when its connection is dead: no headers in time, no byte for the idle time, or, over that
// time, fewer bytes than lead anywhere. Time spent in our own throttle or with our own consumer does not count.
type watch struct {
	t      *transport
	ctx    context.Context //nolint:containedctx // of the one request that is watched
	cancel context.CancelCauseFunc
	header time.Duration // to the answer's headers
	sent   *uploadBody   // nil for none

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// newWatch begins to wait for the answer's headers, and makes the context under which the request must run.
func newWatch(ctx context.Context, t *transport, header time.Duration) *watch {
	ctx, cancel := context.WithCancelCause(ctx)
	return &watch{t: t, ctx: ctx, cancel: cancel, header: header, timer: time.AfterFunc(header, func() {
		cancel(fmt.Errorf("%w: no answer within %v", ErrStalled, header))
	})}
}

// touch puts the deadline off by d; it does nothing once stopped.
func (w *watch) touch(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.timer.Reset(d)
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// end ends the request, if it still runs. RoundTrip may want to read its body even then, but the caller's reader is left
// alone from now on.
func (w *watch) end() {
	w.stop()
	w.cancel(nil)
	if w.sent != nil {
		w.sent.mu.Lock()
		defer w.sent.mu.Unlock()
		w.sent.r = nil
	}
}

// upload wraps a request body: each piece that the connection takes puts the deadline off.
func (w *watch) upload(r *request) io.ReadCloser {
	body := r.body()
	if r.bulk {
		body = &bulkReader{w.ctx, &w.t.opt, &w.t.opt.Governor.out, &w.t.stats.bytesOut, body}
	}
	w.sent = &uploadBody{w: w, r: body, left: r.size}
	return io.NopCloser(w.sent)
}

type uploadBody struct {
	w *watch

	mu   sync.Mutex
	r    io.Reader // nil once the request has ended
	left int64     // bytes that must still come
}

// errLocalBody marks a body that we could not read; the network is not at fault.
var errLocalBody = errors.New("the file to send cannot be read")

func (u *uploadBody) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.r == nil {
		return 0, io.ErrClosedPipe
	}
	n, err := u.r.Read(p)
	u.left -= int64(n)
	if u.left > 0 {
		u.w.touch(u.w.t.opt.IdleTimeout)
	} else {
		u.w.touch(u.w.header)
	}
	switch {
	case err == io.EOF && u.left > 0:
		return n, fmt.Errorf("%w: it ends %d bytes early", errLocalBody, u.left)
	case err != nil && err != io.EOF && context.Cause(u.w.ctx) == nil:
		return n, fmt.Errorf("%w: %w", errLocalBody, err)
	}
	return n, err
}

// guard wraps the answer's body; closing it ends the request.
func (w *watch) guard(body io.ReadCloser, bulk bool) io.ReadCloser {
	w.stop()
	limit := w.t.opt.IdleTimeout
	idle := time.AfterFunc(limit, func() { w.cancel(fmt.Errorf("%w: no byte for %v", ErrStalled, limit)) })
	idle.Stop() // until the first Read
	b := &guardedBody{w: w, body: body, idle: idle}
	if !bulk {
		return b
	}
	return struct {
		io.Reader
		io.Closer
	}{&bulkReader{w.ctx, &w.t.opt, &w.t.opt.Governor.in, &w.t.stats.bytesIn, b}, b}
}

type guardedBody struct {
	w    *watch
	body io.ReadCloser
	idle *time.Timer // runs during a Read

	busy  time.Duration // spent reading in this window
	bytes int64         // received in this window
}

func (b *guardedBody) Read(p []byte) (int, error) {
	b.idle.Reset(b.w.t.opt.IdleTimeout)
	start := time.Now()
	n, err := b.body.Read(p)
	b.idle.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		return n, causeOf(b.w.ctx, err)
	}
	if slow := b.tooSlow(n, time.Since(start)); slow != nil && err == nil {
		err = slow
	}
	return n, err
}

// errTooSlow ends an answer that comes, but at a rate that leads nowhere.
var errTooSlow = fmt.Errorf("%w: too few bytes", ErrStalled)

// leastRate is the least that a line must bring, in bytes per second: all connections share it.
const leastRate = 8 << 10

// tooSlow closes the window when it is full and judges it.
func (b *guardedBody) tooSlow(n int, took time.Duration) error {
	b.busy, b.bytes = b.busy+took, b.bytes+int64(n)
	opt := &b.w.t.opt
	if b.busy < opt.IdleTimeout {
		return nil
	}
	rate := int64(float64(b.bytes) / b.busy.Seconds())
	b.busy, b.bytes = 0, 0
	if rate < int64(leastRate/max(opt.Connections, fewSlots)) {
		return fmt.Errorf("%w: %d bytes per second over %v", errTooSlow, rate, opt.IdleTimeout)
	}
	return nil
}

func (b *guardedBody) Close() error {
	b.idle.Stop()
	b.w.end()
	return b.body.Close()
}

// causeOf gives the reason why a request was ended, in place of the bare cancellation.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}
