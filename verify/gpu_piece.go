package verify

import (
	"context"
	"encoding/binary"
	"sort"

	"github.com/df11-convert/df11-convert/verify/kernel"
)

// gpuPiece is a range of whole chunks, and where its parts are in a slot. The kernel's tables come
// first, because all pieces of a unit share them and need them in the same place. Then come the
// parts that are uploaded: luts, coded stream, gaps, positions, sign_mantissa.
type gpuPiece struct {
	chunkRange
	elem    int64 // the unit's element that the piece starts with
	nElems  int
	widest  int // weights of the chunk with the most weights
	nLUTs   int // rows
	nStream int // bytes of the coded stream that the kernel may read

	tables, luts, stream, gaps, positions, sm, out, size int // offsets in the slot
	nUpload                                              int // bytes to upload, starting at luts
}

const (
	slotAlign = 256
	// bytes of the coded stream after a piece, because the last code may reach into them
	pieceTail = 4
)

func alignSlot(n int) int { return (n + slotAlign - 1) &^ (slotAlign - 1) }

// newPiece lays out a range of chunks.
func newPiece(u *Unit, r chunkRange) gpuPiece {
	first, end := u.span(r)
	p := gpuPiece{chunkRange: r, elem: first, nElems: int(end - first), widest: u.widest(r),
		nLUTs: u.tables.nTables + 1}
	p.nStream = int(min(u.nStream-int64(r.first)*chunkBytes, int64(r.n*chunkBytes+pieceTail)))
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

// cutPieces cuts a unit into as few pieces of at most size bytes as the order of its chunks allows.
// Any slot has room for a piece of one chunk. A piece without weights is left out.
func cutPieces(u *Unit, size int) []gpuPiece {
	var all []gpuPiece
	for first := 0; first < u.nChunks; {
		n := sort.Search(u.nChunks-first, func(i int) bool {
			return newPiece(u, chunkRange{first, i + 1}).size > size
		})
		p := newPiece(u, chunkRange{first, max(1, n)})
		if first += p.n; p.nElems > 0 {
			all = append(all, p)
		}
	}
	return all
}

// fill reads a piece's part of the arrays into b. Bytes past the end of the arrays become zeros.
func (p *gpuPiece) fill(ctx context.Context, u *Unit, b []byte, workers int) error {
	copy(b[p.luts:p.stream], u.tables.raw)
	stream := b[p.stream : p.stream+p.n*chunkBytes+pieceTail]
	gaps := b[p.gaps : p.gaps+p.n*gapBytes+kernel.Slack]
	positions := b[p.positions : p.positions+4*(p.n+1)]
	for i := range p.n + 1 {
		binary.LittleEndian.PutUint32(positions[4*i:], u.positions[p.first+i]-uint32(p.elem))
	}
	if err := u.arrays.readPadded(NameGaps, gaps, int64(p.first)*gapBytes); err != nil {
		return err
	}
	if err := inStretches(ctx, len(stream), workers, func(from, to int) error {
		return u.arrays.readPadded(NameEncodedExponent, stream[from:to],
			int64(p.first)*chunkBytes+int64(from))
	}); err != nil {
		return err
	}
	return inStretches(ctx, p.nElems, workers, func(from, to int) error {
		return u.arrays.read(NameSignMantissa, b[p.sm+from:p.sm+to], p.elem+int64(from))
	})
}
