package hub

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

// Stream gives bytes [off, end) of a file in order, several ranges ahead of
// the reader. It resumes, renews links and retries inside; io.EOF comes only
// after the last byte, and ErrChanged when the file is no longer the same.
// Fetch-ahead is bounded by Options.BufferBytes for all streams together, and
// one range for each stream besides. The hash of a whole file is the caller's
// to check. Close the reader; it may be closed at any time, but not while a
// Read runs. A Read ends as soon as ctx does.
func (c *Client) Stream(ctx context.Context, f FileRef, off, end int64) (io.ReadCloser, error) {
	if err := c.checkSpan(f, off, end); err != nil {
		return nil, err
	}
	if r, ok := c.openCached(f, off, end); ok {
		return r, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{c: c, f: f, ctx: ctx, cancel: cancel,
		segments: make(chan *segment, cap(c.buffers)+1), own: make(chan []byte, 1)}
	s.own <- nil
	s.workers.Go(func() { s.dispatch(off, end) })
	return s, nil
}

// FreeBuffers lets go of the buffers in which streams fetch ahead, but for those
// in use. Streams make new ones.
func (c *Client) FreeBuffers() {
	for range cap(c.buffers) {
		select {
		case <-c.buffers:
			c.buffers <- nil
		default:
			return
		}
	}
}

// cachedReader reads a span of a cached file. A file that has become shorter is
// an error, not the end.
type cachedReader struct {
	io.Closer
	r    io.Reader
	left int64
}

func (r *cachedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.left -= int64(n)
	if err == io.EOF && r.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *Client) openCached(f FileRef, off, end int64) (io.ReadCloser, bool) {
	path, ok := c.CachedPath(f)
	if !ok {
		return nil, false
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	return &cachedReader{Closer: file, r: io.NewSectionReader(file, off, end-off), left: end - off}, true
}

// stream is one file on its way. The dispatcher cuts it into segments and
// hands them, in order, to workers and to the reader.
type stream struct {
	c        *Client
	f        FileRef
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

// dispatch takes a buffer and a connection for each segment, both in file
// order, so that the reader's segment is never the one that waits.
func (s *stream) dispatch(off, end int64) {
	defer close(s.segments)
	for ; off < end; off += s.c.opt.RangeBytes {
		begin, n := off, min(s.c.opt.RangeBytes, end-off)
		seg := s.take(n)
		if seg == nil {
			return
		}
		select {
		case s.c.conns <- struct{}{}:
		case <-s.ctx.Done():
			seg.release()
			return
		}
		s.segments <- seg // has room for every buffer there is
		s.workers.Go(func() { s.fill(seg, begin, n) })
	}
}

func (s *stream) fill(seg *segment, off, n int64) {
	err := s.c.fetch(s.ctx, s.f, off, n, seg)
	<-s.c.conns
	seg.finish(err)
}

// take waits for a buffer: the stream's own, or a shared one. It gives nil
// when the stream ends first.
func (s *stream) take(n int64) *segment {
	var home chan []byte
	var buf []byte
	select {
	case buf = <-s.own:
		home = s.own
	default:
		select {
		case buf = <-s.own:
			home = s.own
		case buf = <-s.c.buffers:
			home = s.c.buffers
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
	if s.err != nil || len(p) == 0 {
		return 0, s.err
	}
	for {
		if s.cur == nil {
			if s.err = s.next(); s.err != nil {
				return 0, s.err
			}
		}
		n, state, err := s.cur.read(p)
		switch {
		case err != nil:
			s.err = err
			return n, err
		case state == segmentDone:
			s.cur.release()
			s.cur = nil
		}
		if n > 0 {
			return n, nil
		}
		if state == segmentEmpty {
			if s.err = s.await(); s.err != nil {
				return 0, s.err
			}
		}
	}
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

// await blocks until the current segment has more.
func (s *stream) await() error {
	select {
	case <-s.cur.more:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// Close ends all transfers of the stream, waits for them, and gives the
// buffers back.
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

// segmentState is what a read from a segment found.
type segmentState int

const (
	segmentMore  segmentState = iota // bytes were there
	segmentEmpty                     // nothing yet
	segmentDone                      // all bytes have been read
)

// segment is one range of a stream: a worker fills it while the reader
// follows. Its buffer goes home when the reader is done.
type segment struct {
	buf  []byte
	home chan []byte
	more chan struct{} // signalled after each change
	pos  int           // read so far; the reader's alone

	mu   sync.Mutex
	n    int // filled so far
	done bool
	err  error
}

func (g *segment) space() []byte { return g.buf[g.count():] }
func (g *segment) filled() int64 { return int64(g.count()) }

func (g *segment) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

func (g *segment) advance(n int) {
	g.mu.Lock()
	g.n += n
	g.mu.Unlock()
	g.signal()
}

// finish ends the segment; an error reaches the reader after the bytes that
// came before it.
func (g *segment) finish(err error) {
	g.mu.Lock()
	g.done, g.err = true, err
	g.mu.Unlock()
	g.signal()
}

func (g *segment) signal() {
	select {
	case g.more <- struct{}{}:
	default:
	}
}

// read copies what is there. The bytes below n are written no more, so the
// copy needs no lock. A segment is done only after its worker is, because the
// buffer is given away then.
func (g *segment) read(p []byte) (int, segmentState, error) {
	g.mu.Lock()
	n, done, err := g.n, g.done, g.err
	g.mu.Unlock()
	k := copy(p, g.buf[g.pos:n])
	g.pos += k
	switch {
	case g.pos == len(g.buf) && done && err == nil:
		return k, segmentDone, nil
	case k > 0:
		return k, segmentMore, nil
	case done:
		return 0, segmentDone, err
	}
	return 0, segmentEmpty, nil
}

func (g *segment) release() {
	g.home <- g.buf // cap is the number of buffers: never blocks
	g.buf = nil
}
