package disk

import (
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/internal/streams"
)

// windowBytes is how much is written at once, at multiples of that size. Linux makes the pieces of
// its page cache as large as the write that first touches them. Larger writes gain nothing.
const windowBytes = streams.BlockBytes

// Gather collects bytes in windows of its file. It writes each window when it's complete, or on
// Flush. WriteAt may be called concurrently for ranges that don't overlap; Flush may not.
type Gather struct {
	w io.WriterAt

	mu   sync.Mutex
	open map[int64]*window

	// writing is held during a write. Linux allows one write to a file at a time, and other writers
	// would spin in the kernel. Waiting here leaves their cores to others.
	writing sync.Mutex
}

// window is an incomplete piece of the file.
type window struct {
	buf  *streams.Block
	have []span // disjoint
	size int    // of all of them
}

// span is a range of bytes in a window.
type span struct{ from, end int }

// NewGather returns a Gather that writes to w.
func NewGather(w io.WriterAt) *Gather { return &Gather{w: w, open: map[int64]*window{}} }

// WriteAt takes p, and borrows it until it returns. The error may come from an earlier write to the
// same window.
func (g *Gather) WriteAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		at, from := (off+int64(done))/windowBytes, int((off+int64(done))%windowBytes)
		part := p[done:][:min(len(p)-done, windowBytes-from)]
		if err := g.put(at, from, part); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// put copies p into a window without holding the lock. If that completes the window, put writes it.
func (g *Gather) put(at int64, from int, p []byte) error {
	if len(p) == windowBytes {
		return g.write(p, at*windowBytes)
	}
	x := g.window(at)
	copy(x.buf[from:], p)
	if !g.add(at, x, span{from, from + len(p)}) {
		return nil
	}
	defer streams.PutBlock(x.buf)
	return g.write(x.buf[:], at*windowBytes)
}

func (g *Gather) window(at int64) *window {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.open[at]
	if x == nil {
		x = &window{buf: streams.GetBlock()}
		g.open[at] = x
	}
	return x
}

// add notes which bytes a window has, and closes the window when it's complete.
func (g *Gather) add(at int64, x *window, s span) (complete bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x.have = append(x.have, s)
	x.size += s.end - s.from
	if x.size < windowBytes {
		return false
	}
	delete(g.open, at)
	return true
}

func (g *Gather) write(p []byte, off int64) error {
	g.writing.Lock()
	defer g.writing.Unlock()
	_, err := g.w.WriteAt(p, off)
	return err
}

// Flush writes what the incomplete windows have. No WriteAt may be running.
func (g *Gather) Flush() error {
	for at, x := range g.open {
		for _, s := range x.have {
			if err := g.write(x.buf[s.from:s.end], at*windowBytes+int64(s.from)); err != nil {
				return err
			}
		}
		delete(g.open, at)
		streams.PutBlock(x.buf)
	}
	return nil
}
