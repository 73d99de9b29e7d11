//go:build !nogpu

package verify

import (
	"encoding/binary"

	"github.com/df11-convert/df11-convert/verify/kernel"
)

// gpuPiece is a run of whole chunks, and where its parts lie in a slot. Our kernel's tables come first: all
// pieces of a unit have the same, in the same place. Then what is uploaded: luts, coded stream, gaps,
// positions, sign_mantissa. The official kernel takes such a piece for a unit.
type gpuPiece struct {
	chunkRange
	elem    int64 // the unit's element that is the piece's first
	nElems  int
	nChunks int // chunkRange.n
	widest  int // weights of the chunk that has most
	nLUTs   int // rows
	nStream int // bytes of the coded stream that the kernel may read

	tables, luts, stream, gaps, positions, sm, out, size int // offsets in the slot
	nUpload                                              int // bytes, from luts on
}

const (
	slotAlign = 256
	pieceTail = 4                               // bytes of the coded stream behind a piece: the last code may reach into them
	minSlot   = (maxTables+1)*rowBytes + 8192 + // luts; stream, gaps, positions of a chunk
		kernel.TableBytes + 3*maxChunkElems + 7*slotAlign // tables; sign_mantissa, weights
)

func alignSlot(n int) int { return (n + slotAlign - 1) &^ (slotAlign - 1) }

// newPiece lays a run of chunks out.
func (u *Unit) newPiece(r chunkRange) gpuPiece {
	first, end := u.span(r)
	p := gpuPiece{chunkRange: r, nChunks: r.n, elem: first, nElems: int(end - first), nLUTs: u.tables.nTables + 1}
	p.nStream = int(min(u.nStream-int64(r.first)*chunkBytes, int64(r.n*chunkBytes+pieceTail)))
	for c := r.first; c < r.first+r.n; c++ {
		p.widest = max(p.widest, int(u.positions[c+1]-u.positions[c]))
	}
	p.luts = p.tables + alignSlot(kernel.TableBytes)
	p.stream = p.luts + alignSlot(p.nLUTs*rowBytes)
	p.gaps = p.stream + alignSlot(r.n*chunkBytes+pieceTail)
	p.positions = p.gaps + alignSlot(r.n*gapBytes+kernel.Slack)
	p.sm = p.positions + alignSlot(4*(r.n+1))
	p.nUpload = p.sm + p.nElems - p.luts
	p.out = p.sm + alignSlot(p.nElems)
	p.size = p.out + 2*p.nElems
	return p
}

// pieces cuts a unit into as few pieces of at most size bytes as the order of its chunks allows. Every
// chunk fits minSlot. Chunks without weights have no piece of their own.
func (u *Unit) pieces(size int) []gpuPiece {
	var all []gpuPiece
	for first := 0; first < u.nChunks; {
		p := u.newPiece(chunkRange{first, u.fitting(first, size)})
		if first += p.nChunks; p.nElems > 0 {
			all = append(all, p)
		}
	}
	return all
}

// fitting is how many chunks from first on fit size bytes: at least one.
func (u *Unit) fitting(first, size int) int {
	low, high := 1, u.nChunks-first
	for low < high {
		middle := (low + high + 1) / 2
		if u.pieceSize(first, middle) <= int64(size) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// pieceSize is at least the size of the piece of n chunks from first on.
func (u *Unit) pieceSize(first, n int) int64 {
	elems := int64(u.positions[first+n]) - int64(u.positions[first])
	return minSlot - 3*maxChunkElems + int64(n-1)*(chunkBytes+gapBytes+4) + 3*elems
}

// fillPiece reads a piece's part of the arrays to its place in b. What lies behind the arrays is zero.
func (u *Unit) fillPiece(p *gpuPiece, b []byte, workers int) error {
	copy(b[p.luts:p.stream], u.tables.raw)
	stream := b[p.stream : p.stream+p.nChunks*chunkBytes+pieceTail]
	gaps := b[p.gaps : p.gaps+p.nChunks*gapBytes+kernel.Slack]
	positions := b[p.positions : p.positions+4*(p.nChunks+1)]
	for i := range p.nChunks + 1 {
		binary.LittleEndian.PutUint32(positions[4*i:], u.positions[p.first+i]-uint32(p.elem))
	}
	if err := readPadded(u.arrays.Gaps, gaps, int64(p.first)*gapBytes, arrayGaps); err != nil {
		return err
	}
	if err := inStretches(len(stream), workers, func(from, to int) error {
		off := int64(p.first)*chunkBytes + int64(from)
		if off >= u.nStream {
			clear(stream[from:to])
			return nil
		}
		return readPadded(u.arrays.EncodedExponent, stream[from:to], off, arrayEncodedExponent)
	}); err != nil {
		return err
	}
	return inStretches(p.nElems, workers, func(from, to int) error {
		return readAt(u.arrays.SignMantissa, b[p.sm+from:p.sm+to], p.elem+int64(from), arraySignMantissa)
	})
}
