package hub

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// A stream is one file on its way. The dispatcher cuts it into segments and passes them, in order,
// to workers and the reader.
type stream struct {
	from     *downloads
	file     FileRef
	ctx      context.Context //nolint:containedctx // of this io.ReadCloser; Close ends it
	cancel   context.CancelCauseFunc
	workers  sync.WaitGroup
	segments chan *segment // in file order; closed by the dispatcher
	own      chan []byte   // the one buffer that this stream always has
	cur      *segment
	err      error
	arrived  atomic.Int64
	asked    chan struct{} // closed when no range is left to ask for
}

// Requested returns a channel that is closed when the last range has been asked for. A stream
// that's opened then keeps the line busy.
func (s *stream) Requested() <-chan struct{} { return s.asked }

// Arrived returns how many bytes have arrived, whether or not they were read.
func (s *stream) Arrived() int64 { return s.arrived.Load() }

// errClosed is the cause of a stream's end by Close.
var errClosed = errors.New("stream is closed")

// stream starts to fetch bytes [off, end) of a file.
func (d *downloads) stream(ctx context.Context, f FileRef, off, end int64) *stream {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{from: d, file: f, ctx: ctx, cancel: cancel,
		segments: make(chan *segment, cap(d.buffers)+1), own: make(chan []byte, 1),
		asked: make(chan struct{})}
	s.own <- nil
	s.workers.Go(func() { s.dispatch(off, end) })
	return s
}

// FreeBuffers frees the fetch-ahead buffers that aren't in use. Streams make new ones.
func (c *Client) FreeBuffers() {
	buffers := c.files.buffers
	for range cap(buffers) {
		select {
		case <-buffers:
			buffers <- nil
		default:
			return
		}
	}
}

// dispatch takes a buffer for each segment, in file order, so that the reader's next segment always
// has one.
func (s *stream) dispatch(off, end int64) {
	defer close(s.asked)
	defer close(s.segments)
	step := s.from.rangeBytes
	for ; off < end; off += step {
		begin := off
		seg := s.take(min(step, end-off))
		if seg == nil {
			return
		}
		_, err := s.from.locate(s.ctx, s.file)
		s.segments <- seg // has room for every buffer
		if err != nil {
			seg.finish(err)
			return
		}
		s.workers.Go(func() { seg.finish(s.from.fetch(s.ctx, s.file, begin, seg)) })
	}
}

// take waits for the stream's own buffer or a shared one. If the stream ends first, it returns nil.
func (s *stream) take(n int64) *segment {
	var buf []byte
	home := s.own
	select {
	case buf = <-s.own:
	case buf = <-s.from.buffers:
		home = s.from.buffers
	case <-s.ctx.Done():
		return nil
	}
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	return &segment{buf: buf[:n], home: home, more: make(chan struct{}, 1), arrived: &s.arrived}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for s.err == nil && len(p) > 0 {
		if s.cur == nil {
			if s.err = s.next(); s.err != nil {
				break
			}
		}
		n, done, err := s.cur.read(p)
		if s.err = err; done {
			s.cur.release()
			s.cur = nil
		}
		if n > 0 {
			return n, nil
		}
		if err == nil && !done {
			select {
			case <-s.cur.more:
			case <-s.ctx.Done():
				s.err = context.Cause(s.ctx)
			}
		}
	}
	return 0, s.err
}

// next goes on to the following segment. It returns io.EOF after the last.
func (s *stream) next() error {
	select {
	case seg, ok := <-s.segments:
		if ok {
			s.cur = seg
			return nil
		}
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		return io.EOF
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// Close ends all transfers of the stream, waits for them, and returns the buffers.
func (s *stream) Close() error {
	s.cancel(errClosed)
	s.workers.Wait()
	if s.cur != nil {
		s.cur.release()
		s.cur = nil
	}
	for seg := range s.segments {
		seg.release()
	}
	if s.err == nil {
		s.err = errClosed
	}
	return nil
}
