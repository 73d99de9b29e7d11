package fetch

import (
	"cmp"
	"context"
	"hash/crc32"
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// readings compares two readings of local source files: that of the pass that hashes a file, and
// that of the comparison with an output. Otherwise a program that writes to a file meanwhile could
// give an output of one state and a hash of another: a mapped file keeps its time.
type readings struct {
	mu    sync.Mutex
	first map[place]uint32 // what the tensors gave whose first reading has ended
}

// place is where a tensor begins in the source.
type place struct {
	file int
	off  int64
}

// add adds the sum of one reading of a tensor. It reports whether the other one, if there was one,
// gave the same.
func (r *readings) add(at place, sum uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == nil {
		r.first = map[place]uint32{}
	}
	other, ok := r.first[at]
	r.first[at] = sum
	return !ok || other == sum
}

// noted returns a step of a pass over a whole local file that notes what its tensors give, and then
// calls use.
func (f *Fetcher) noted(file *sourceFile, use use) use {
	var sum uint32
	return func(ctx context.Context, b block) error {
		if b.segment < 0 {
			return use(ctx, b)
		}
		seg := file.segments[b.segment]
		if b.off == seg.Off {
			sum = 0
		}
		sum = crc(sum, b.buf)
		if b.off+int64(len(b.buf)) == seg.End && !f.readings.add(place{file.Index, seg.Off}, sum) {
			return cmp.Or[error](f.Source.Unchanged(file.Index),
				&model.ChangedError{File: file.Path, Read: true})
		}
		return use(ctx, b)
	}
}

// Compared is a reader of a task's spool for one comparison, which reads every byte once, in any
// order and from any number of goroutines.
type Compared struct {
	io.ReaderAt
	fetcher *Fetcher
	pieces  []*pieces
}

// Compared returns a reader of a complete task's spool.
func (f *Fetcher) Compared(t *Task) *Compared {
	c := &Compared{t.Spool, f, nil}
	if t.Spooled(f.Model.Local) {
		return c // the bytes that were hashed are in it
	}
	var sections []*io.SectionReader
	for x := range t.Tensors() {
		p := &pieces{section: io.NewSectionReader(f.Source.Local(x.File), x.Offset, x.Length),
			at: place{x.File, x.Offset}}
		c.pieces = append(c.pieces, p)
		sections = append(sections, io.NewSectionReader(p, 0, x.Length))
	}
	c.ReaderAt = streams.Join(sections...)
	return c
}

// Unchanged returns a *model.ChangedError if a tensor gave other bytes when its file was hashed.
// Call it after the comparison.
func (c *Compared) Unchanged() error {
	for _, p := range c.pieces {
		if p.section.Size() > 0 && !c.fetcher.readings.add(p.at, p.sum) {
			return &model.ChangedError{File: c.fetcher.files[p.at.file].Path, Read: true}
		}
	}
	return nil
}

// pieces reads a tensor in pieces and sums them up as if it was read in order.
type pieces struct {
	section *io.SectionReader
	at      place
	mu      sync.Mutex
	sum     uint32
}

func (p *pieces) ReadAt(b []byte, off int64) (int, error) {
	n, err := p.section.ReadAt(b, off)
	sum := shifted(crc(0, b[:n]), p.section.Size()-off-int64(n))
	p.mu.Lock()
	p.sum ^= sum
	p.mu.Unlock()
	return n, err
}

// crc goes on with a CRC-32C that begins with 0 and isn't inverted at its end. Such a sum of a whole
// is the xor of its pieces' sums, each shifted by the bytes that follow it.
func crc(sum uint32, p []byte) uint32 { return ^crc32.Update(^sum, castagnoli, p) }

// shifted returns the sum of what has this sum and then n bytes of zero.
func shifted(sum uint32, n int64) uint32 {
	for power := uint32(1) << (31 - 8); n > 0; n >>= 1 { // x^8, x^16, x^32, …
		if n&1 != 0 {
			sum = product(sum, power)
		}
		power = product(power, power)
	}
	return sum
}

// product multiplies two polynomials modulo that of CRC-32C. The highest bit is x^0.
func product(a, b uint32) (p uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 != 0 {
			p ^= b
		}
		odd := b & 1
		if b >>= 1; odd != 0 {
			b ^= crc32.Castagnoli
		}
	}
	return p
}
