package hub

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// stream is one file on its way. The dispatcher cuts it into segments and hands them, in order, to
// workers and to the reader.
type stream struct {
	from     *downloads
	file     FileRef
	ctx      context.Context //nolint:containedctx // of this stream, an io.ReadCloser; ended by Close
	cancel   context.CancelCauseFunc
	workers  sync.WaitGroup
	segments chan *segment // in file order; closed by the dispatcher
	own      chan []byte   // the one buffer that this stream always has
	cur      *segment
	err      error
}

// errClosed is the cause with which Close ends a stream.
var errClosed = errors.New("stream is closed")

// stream begins to fetch bytes [off, end) of a file.
func (d *downloads) stream(ctx context.Context, f FileRef, off, end int64) *stream {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{from: d, file: f, ctx: ctx, cancel: cancel,
		segments: make(chan *segment, cap(d.buffers)+1), own: make(chan []byte, 1)}
	s.own <- nil
	s.workers.Go(func() { s.dispatch(off, end) })
	return s
}

// FreeBuffers lets go of the buffers in which streams fetch ahead, but for those in use. Streams
// make new ones.
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

// dispatch takes a buffer and a connection for each segment, both in file order, so that the
// segment that the reader needs next never waits behind a later one. No connection is kept from
// others while the hub looks the file up.
func (s *stream) dispatch(off, end int64) {
	defer close(s.segments)
	step := s.from.rangeBytes
	for ; off < end; off += step {
		begin := off
		seg := s.take(min(step, end-off))
		if seg == nil {
			return
		}
		conn := &wire.Slot{Of: s.from.conns}
		_, err := s.from.locate(s.ctx, s.file)
		if err == nil {
			err = conn.Take(s.ctx)
		}
		s.segments <- seg // has room for every buffer there is
		if err != nil {
			seg.finish(err)
			return
		}
		s.workers.Go(func() { seg.finish(s.from.fetch(s.ctx, s.file, begin, seg, conn)) })
	}
}

// take waits for a buffer: the stream's own before a shared one. It gives nil when the stream ends
// first.
func (s *stream) take(n int64) *segment {
	var buf []byte
	home := s.own
	select {
	case buf = <-s.own:
	default:
		select {
		case buf = <-s.own:
		case buf = <-s.from.buffers:
			home = s.from.buffers
		case <-s.ctx.Done():
			return nil
		}
	}
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	return &segment{buf: buf[:n], home: home, more: make(chan struct{}, 1)}
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

// next moves on to the following segment; io.EOF after the last.
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

// Close ends all transfers of the stream, waits for them, and gives the buffers back.
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
