package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// watch ends one request when its connection is dead: no headers in time, or fewer bytes in the
// idle time than lead anywhere. Time spent in our own throttle or with our own consumer does not
// count.
type watch struct {
	t      *Transport
	ctx    context.Context //nolint:containedctx // of the one request that is watched
	cancel context.CancelCauseFunc
	header time.Duration // to the answer's headers

	mu    sync.Mutex
	timer *time.Timer // ends the request; nil once its headers have come
	sends io.Reader   // the body; nil if there is none, and once the request has ended
	left  int64       // bytes of it that must still be sent
}

// newWatch begins to wait for the answer's headers, and makes the context under which the request
// must run.
func newWatch(ctx context.Context, t *Transport, header time.Duration) *watch {
	ctx, cancel := context.WithCancelCause(ctx)
	return &watch{t: t, ctx: ctx, cancel: cancel, header: header,
		timer: time.AfterFunc(header, func() {
			cancel(fmt.Errorf("%w: no answer within %v", ErrStalled, header))
		})}
}

// answered ends the wait for headers.
func (w *watch) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// end ends the request, if it still runs. RoundTrip may want to read its body even then, but the
// caller's reader is left alone from now on.
func (w *watch) end() {
	w.cancel(nil)
	w.answered()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sends = nil
}

// upload is the body of the request.
func (w *watch) upload(r *Request) io.ReadCloser {
	w.sends, w.left = r.Body(), r.Size
	if r.Bulk {
		w.sends = &bulkReader{w, w.t.Opt.Governor.out, w.sends}
	}
	return io.NopCloser(w)
}

// Read gives the body to the connection. Each piece puts the deadline off.
func (w *watch) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sends == nil {
		return 0, io.ErrClosedPipe
	}
	n, err := w.sends.Read(p)
	w.left -= int64(n)
	switch {
	case w.timer == nil: // the answer has come early
	case w.left > 0:
		w.timer.Reset(w.t.Opt.StallTimeout)
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

// guard wraps the answer's body; closing it ends the request.
func (w *watch) guard(body io.ReadCloser, bulk bool) io.ReadCloser {
	w.answered()
	limit, least := w.t.Opt.StallTimeout, leastBytes(w.t.Opt.StallTimeout)
	b := &guardedBody{w: w, body: body, left: limit, idle: time.AfterFunc(limit, func() {
		w.cancel(fmt.Errorf("%w: less than %d bytes in %v", ErrStalled, least, limit))
	})}
	b.idle.Stop() // until the first Read
	if !bulk {
		return b
	}
	return struct {
		io.Reader
		io.Closer
	}{&bulkReader{w, w.t.Opt.Governor.in, b}, b}
}

// leastRate is the least that a line must bring, in bytes per second: all connections share it.
const leastRate = 8 << 10

// leastBytes is what one connection must bring in so much time.
func leastBytes(d time.Duration) int64 { return int64(d.Seconds() * leastRate / Transfers) }

type guardedBody struct {
	w     *watch
	body  io.ReadCloser
	idle  *time.Timer   // runs during a Read
	left  time.Duration // of reading, until the least must be there
	bytes int64         // received meanwhile
}

func (b *guardedBody) Read(p []byte) (int, error) {
	b.idle.Reset(b.left)
	start := time.Now()
	n, err := b.body.Read(p)
	b.idle.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		return n, causeOf(b.w.ctx, err)
	}
	b.left, b.bytes = b.left-time.Since(start), b.bytes+int64(n)
	if limit := b.w.t.Opt.StallTimeout; b.bytes >= leastBytes(limit) {
		b.left, b.bytes = limit, 0
	}
	return n, err
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
