package hub

import (
	"errors"
	"io"
	"sync"
)

// segment is one range of a file: a worker fills it while a reader may follow. The buffer of a
// stream's segment goes home when the reader is done.
type segment struct {
	buf  []byte
	home chan []byte
	more chan struct{} // signalled after each change; nil if nobody follows
	pos  int           // read so far; the reader's alone

	mu   sync.Mutex
	n    int // filled so far
	done bool
	err  error
}

// readFrom fills the segment. A body that ends early is io.ErrUnexpectedEOF; bytes beyond the range
// are not read.
func (g *segment) readFrom(body io.Reader, brought func(n int)) error {
	for {
		space := g.space()
		if len(space) == 0 {
			return nil
		}
		n, err := body.Read(space)
		g.update(func() { g.n += n })
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

// space is where the next bytes go; empty when the range is complete.
func (g *segment) space() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf[g.n:]
}

// finish ends the segment; an error reaches the reader after the bytes that came before it.
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

// read copies the bytes that are there. Those below n are written no more, so that the copy needs
// no lock. A segment is done only after its worker is, because the buffer is given away then.
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
	g.home <- g.buf // cap is the number of buffers: never blocks
	g.buf = nil
}
