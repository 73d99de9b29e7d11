package verify

import (
	"context"
	"io"
	"sync"
)

// block is a range of chunks in progress: its part of the arrays, and the codes of some of its
// chunks.
type block struct {
	chunkRange
	stream []byte // coded stream, and readAhead bytes more; zeros past the end
	gaps   []byte // gaps, and the next chunk's first bytes; zeros past the end
	sm     []byte // sign_mantissa
	bf16   []byte // weights of the source, or decoded ones

	// The chunks that are decoded in turns.
	chunks [maxLanes]chunkData
	lanes  [maxLanes]lane
	codes  [maxLanes]codes
}

// blocks holds idle blocks. The ranges of all units share them, so that thousands of ranges leave
// no garbage. Their contents are undefined.
var blocks = sync.Pool{New: func() any { return new(block) }}

// newBlock returns a block; return it with blocks.Put.
func newBlock() *block { return blocks.Get().(*block) }

// load reads a range of the arrays, and of the source unless src is nil.
func (u *Unit) load(b *block, r chunkRange, src io.ReaderAt) error {
	b.chunkRange = r
	first, end := u.span(r)
	b.stream = grow(b.stream, r.n*chunkBytes+readAhead)
	b.gaps = grow(b.gaps, r.n*gapBytes+8)
	b.sm = grow(b.sm, int(end-first))
	b.bf16 = grow(b.bf16, 2*int(end-first))
	if err := u.arrays.readPadded(NameEncodedExponent, b.stream,
		int64(r.first)*chunkBytes); err != nil {
		return err
	}
	if err := u.arrays.readPadded(NameGaps, b.gaps, int64(r.first)*gapBytes); err != nil {
		return err
	}
	if err := u.arrays.read(NameSignMantissa, b.sm, first); err != nil {
		return err
	}
	if src == nil {
		return nil
	}
	return readAt(src, b.bf16, 2*first, "source")
}

// grow returns a slice of n bytes with undefined contents: buf if it's large enough. It allocates a
// little more than n, because the next range may need it.
func grow(buf []byte, n int) []byte {
	if n > cap(buf) {
		buf = make([]byte, n+n/8)
	}
	return buf[:n]
}

// chunk returns the block's data for its i-th chunk.
func (b *block) chunk(l *layout, i int) chunkData {
	c := b.first + i
	base := l.positions[b.first]
	from, to := int(l.positions[c]-base), int(l.positions[c+1]-base)
	return chunkData{
		index:  c,
		n:      to - from,
		last:   int64(l.positions[c+1]) == l.nElems,
		stream: (*chunkStream)(b.stream[i*chunkBytes:]),
		gaps:   b.gaps[i*gapBytes : (i+1)*gapBytes+8],
		sm:     b.sm[from:to],
		bf16:   b.bf16[2*from : 2*to],
	}
}

// eachChunk decodes the chunks of ranges and calls use for each, in order within a range. src holds
// the unit's weights, or is nil. The error says where a chunk contradicts itself, or is that of use.
// For workers, and for which error it returns, see parallel.
func (u *Unit) eachChunk(ctx context.Context, v *variant, ranges []chunkRange, workers int,
	src io.ReaderAt, use func(*codes, *chunkData) error) error {
	return parallel(ctx, len(ranges), workers, func(i int) error {
		b := newBlock()
		defer blocks.Put(b)
		if err := u.load(b, ranges[i], src); err != nil {
			return err
		}
		return u.decodeBlock(v, b, use)
	})
}

// decodeBlock does eachChunk's work for a loaded block.
func (u *Unit) decodeBlock(v *variant, b *block, use func(*codes, *chunkData) error) error {
	for first := 0; first < b.n; first += v.lanes {
		n := min(v.lanes, b.n-first)
		for i := range n {
			b.chunks[i] = b.chunk(&u.layout, first+i)
		}
		faults := u.decode(v, b, n)
		for i := range n {
			if faults[i] != nil {
				return faults[i]
			}
			if err := use(&b.codes[i], &b.chunks[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
