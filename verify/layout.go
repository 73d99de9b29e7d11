package verify

import (
	"encoding/binary"
	"slices"
)

// blockChunks is how many chunks a worker reads at once. The buffers for these still fit the core's
// own cache.
const blockChunks = 16

// layout holds where the chunks of a unit begin, in the weights and in the coded stream.
type layout struct {
	nElems  int64
	nStream int64 // B, bytes of the coded stream
	nChunks int   // C

	// nChunks+1 entries: the stored ones, plus N if the last is missing (docs/format.md §7)
	positions []uint32
	nEntries  int // how many are stored
}

// newLayout compares the sizes of the arrays. It comes before anything that allocates by these sizes.
func newLayout(a Arrays) (l layout, err error) {
	l = layout{nElems: a[NameSignMantissa].Size(), nStream: a[NameEncodedExponent].Size()}
	l.nChunks = int((l.nStream + chunkBytes - 1) / chunkBytes)
	if l.nElems < 1 || l.nElems > maxElems {
		return l, badArray(NameSignMantissa, "%d weights, want 1 to %d", l.nElems,
			maxElems)
	}
	if l.nStream < 1 || l.nStream > maxStream {
		return l, badArray(NameEncodedExponent, "%d bytes, want 1 to %d", l.nStream,
			maxStream)
	}
	if n := a[NameGaps].Size(); n != int64(l.nChunks)*gapBytes {
		return l, badArray(NameGaps, "%d bytes; %d chunks need %d", n, l.nChunks,
			l.nChunks*gapBytes)
	}
	n := a[NameOutputPositions].Size()
	if n%4 != 0 || (n/4 != int64(l.nChunks) && n/4 != int64(l.nChunks)+1) {
		return l, badArray(NameOutputPositions, "%d bytes; %d chunks need %d, or 4 less", n,
			l.nChunks, 4*(l.nChunks+1))
	}
	l.nEntries = int(n / 4)
	return l, nil
}

// readPositions reads output_positions. Codes start in every chunk, except perhaps in the last
// (docs/format.md §7).
func (l *layout) readPositions(a Arrays) error {
	b, err := a.readAll(NameOutputPositions)
	if err != nil {
		return err
	}
	l.positions = make([]uint32, l.nChunks+1)
	l.positions[l.nChunks] = uint32(l.nElems)
	for i := range l.nEntries {
		l.positions[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	if p := l.positions[0]; p != 0 {
		return badAt(NameOutputPositions, 0, "%d, must be 0", p)
	}
	if p := l.positions[l.nEntries-1]; int64(p) != l.nElems {
		return badAt(NameOutputPositions, int64(l.nEntries-1),
			"%d, must be the number of weights, %d", p, l.nElems)
	}
	for i := range l.nChunks {
		n := int64(l.positions[i+1]) - int64(l.positions[i])
		switch {
		case n < 0, n == 0 && i+1 < l.nChunks:
			return badAt(NameOutputPositions, int64(i+1), "%d after %d", l.positions[i+1],
				l.positions[i])
		case n > maxChunkElems:
			return badAt(NameOutputPositions, int64(i+1),
				"chunk of %d weights; the kernel's shared memory holds %d", n, maxChunkElems)
		}
	}
	return nil
}

// chunkRange is a range of n neighboring chunks.
type chunkRange struct{ first, n int }

// span returns the range of elements that the chunks decode to.
func (l *layout) span(r chunkRange) (first, end int64) {
	return int64(l.positions[r.first]), int64(l.positions[r.first+r.n])
}

// widest returns the largest number of weights that a chunk in the range has.
func (l *layout) widest(r chunkRange) int {
	n := 0
	for c := r.first; c < r.first+r.n; c++ {
		n = max(n, int(l.positions[c+1]-l.positions[c]))
	}
	return n
}

// chunkAt returns the chunk that decodes to element elem.
func (l *layout) chunkAt(elem int64) int {
	i, _ := slices.BinarySearchFunc(l.positions, elem+1,
		func(p uint32, e int64) int { return int(int64(p) - e) })
	return i - 1
}

// cut splits chunks first to end-1 into ranges of blockChunks.
func cut(first, end int) (ranges []chunkRange) {
	for ; first < end; first += blockChunks {
		ranges = append(ranges, chunkRange{first, min(blockChunks, end-first)})
	}
	return ranges
}
