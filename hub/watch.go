package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// A watch ends one request if its connection is dead: no headers in time, or too few bytes in the
// idle time. Time in our own throttle or with our own consumer doesn't count.
type watch struct {
	t      *transport
	ctx    context.Context //nolint:containedctx // of the one watched request
	cancel context.CancelCauseFunc
	header time.Duration // time until the answer's headers
	timer  *time.Timer   // ends the request

	mu       sync.Mutex
	answered bool      // its headers have come
	sends    io.Reader // the body; nil if there is none, or the request has ended
	left     int64     // bytes of it still to send
}

// newWatch starts to wait for the answer's headers, and makes the context for the request.
func newWatch(ctx context.Context, t *transport, header time.Duration) *watch {
	ctx, cancel := context.WithCancelCause(ctx)
	return &watch{t: t, ctx: ctx, cancel: cancel, header: header,
		timer: time.AfterFunc(header, func() { cancel(errStalled) })}
}

// end ends the request if it's still running. RoundTrip may want to read the body even then, but
// from now on the caller's reader is left alone.
func (w *watch) end() {
	w.cancel(nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.sends = nil
}

// upload returns the body of the request.
func (w *watch) upload(r *request) io.ReadCloser {
	w.sends, w.left = r.body(), r.size
	if r.bulk {
		w.sends = &bulkReader{w, &w.t.opt.Governor.out, w.sends}
	}
	return io.NopCloser(w)
}

// Read passes the body to the connection. Each piece extends the deadline.
func (w *watch) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sends == nil {
		return 0, io.ErrClosedPipe
	}
	n, err := w.sends.Read(p)
	w.left -= int64(n)
	switch {
	case w.answered: // early
	case w.left > 0:
		w.timer.Reset(w.t.opt.StallTimeout)
	default:
		w.timer.Reset(w.header)
	}
	switch {
	case err == io.EOF && w.left > 0:
		return n, fmt.Errorf("%w: it ends %d bytes early", errLocalBody, w.left)
	case err != nil && err != io.EOF && context.Cause(w.ctx) == nil:
		return n, fmt.Errorf("%w: %w", errLocalBody, err)
	}
	return n, err
}

// guard wraps the answer's body. Closing it ends the request.
func (w *watch) guard(body io.ReadCloser, bulk bool) io.ReadCloser {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = true
	w.timer.Stop() // until the first Read
	b := &guardedBody{w: w, body: body, left: w.t.opt.StallTimeout}
	if !bulk {
		return b
	}
	return struct {
		io.Reader
		io.Closer
	}{&bulkReader{w, &w.t.opt.Governor.in, b}, b}
}

// leastRate is the least rate of all connections together, in bytes per second.
const leastRate = 8 << 10

// leastBytes is what one connection must bring in that time.
func leastBytes(d time.Duration) int64 { return int64(d.Seconds() * leastRate / maxTransfers) }

type guardedBody struct {
	w     *watch
	body  io.ReadCloser
	left  time.Duration // time of reading until enough must be there
	bytes int64         // received meanwhile
}

func (b *guardedBody) Read(p []byte) (int, error) {
	b.w.timer.Reset(b.left)
	start := time.Now()
	n, err := b.body.Read(p)
	b.w.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		return n, causeOf(b.w.ctx, err)
	}
	b.left, b.bytes = b.left-time.Since(start), b.bytes+int64(n)
	if limit := b.w.t.opt.StallTimeout; b.bytes >= leastBytes(limit) {
		b.left, b.bytes = limit, 0
	}
	return n, err
}

func (b *guardedBody) Close() error {
	b.w.end()
	return b.body.Close()
}

// causeOf returns why a request was ended, instead of the bare cancellation.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}
