package hub

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// A segment is one range of a file. A worker fills it while a reader may follow. A stream's segment
// returns its buffer when the reader is done.
type segment struct {
	buf  []byte
	home chan []byte
	more chan struct{} // signals each change; nil without a reader
	pos  int           // read so far; only the reader uses it

	arrived *atomic.Int64 // the stream's bytes; nil outside streams

	mu   sync.Mutex
	n    int // filled so far
	done bool
	err  error
}

// readFrom fills the segment. A body that ends early is io.ErrUnexpectedEOF. Bytes beyond the range
// aren't read.
func (g *segment) readFrom(body io.Reader, brought func(n int)) error {
	for {
		space := g.space()
		if len(space) == 0 {
			return nil
		}
		n, err := body.Read(space)
		g.update(func() { g.n += n })
		if g.arrived != nil {
			g.arrived.Add(int64(n))
		}
		brought(n)
		switch {
		case n == len(space):
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
}

// space returns where the next bytes go. It's empty when the range is complete.
func (g *segment) space() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf[g.n:]
}

// finish ends the segment. The reader gets an error after the bytes before it.
func (g *segment) finish(err error) {
	g.update(func() { g.done, g.err = true, err })
}

func (g *segment) update(change func()) {
	g.mu.Lock()
	change()
	g.mu.Unlock()
	select {
	case g.more <- struct{}{}:
	default:
	}
}

// read copies the bytes that are there. No one writes below n any more, so the copy needs no lock.
// A segment is done only after its worker, because the buffer is then given away.
func (g *segment) read(p []byte) (k int, done bool, err error) {
	g.mu.Lock()
	n, finished, failure := g.n, g.done, g.err
	g.mu.Unlock()
	k = copy(p, g.buf[g.pos:n])
	g.pos += k
	if k == 0 {
		err = failure
	}
	return k, finished && failure == nil && g.pos == len(g.buf), err
}

func (g *segment) release() {
	g.home <- g.buf // cap is the number of buffers, so this never blocks
	g.buf = nil
}
