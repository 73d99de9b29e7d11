package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Arrays are the six stored arrays of a unit, each as its bytes in the file (docs/format.md §8).
// The readers must allow concurrent ReadAt, as files and byte slices do.
type Arrays struct {
	LUTs            *io.SectionReader // [tables+1, 256] bytes
	EncodedExponent *io.SectionReader // [B] bytes
	SignMantissa    *io.SectionReader // [N] bytes
	OutputPositions *io.SectionReader // [C or C+1] uint32, little-endian
	Gaps            *io.SectionReader // [320*C] bytes
	SplitPositions  *io.SectionReader // [tensors-1] int64, little-endian
}

// Unit is a DF11 unit whose structure has been found sound. It is safe for concurrent use.
type Unit struct {
	arrays  Arrays
	nElems  int64
	nStream int64 // B, bytes of the coded stream
	nChunks int   // C
	tables  *tables
	multi   *multiTable

	// positions has nChunks+1 entries: the stored ones, plus N where the last is missing (§7).
	positions []uint32
	nEntries  int // how many are stored

	ends []int64 // running sums of the tensor sizes, the last one is nElems
}

// Open checks all that the arrays of a unit show without decoding (docs/format.md §6–§9): sizes
// against each other, lookup tables, output positions, split positions, the kernel's limits. nElems
// is the number of weights. sizes are the elements of each tensor in encoding order; nil takes them
// from SplitPositions. A *[StructureError] says what is wrong with the file; other errors come from
// reading. Memory is about 8 bytes per 4096 bytes of EncodedExponent.
func Open(a Arrays, nElems int64, sizes []int64) (*Unit, error) {
	if err := a.complete(); err != nil {
		return nil, err
	}
	u := &Unit{arrays: a, nElems: nElems, nStream: a.EncodedExponent.Size()}
	u.nChunks = int((max(u.nStream, 0) + chunkBytes - 1) / chunkBytes)
	if err := u.checkSizes(); err != nil {
		return nil, err
	}
	if err := u.openTables(); err != nil {
		return nil, err
	}
	if err := u.openPositions(); err != nil {
		return nil, err
	}
	if err := u.openSplit(sizes); err != nil {
		return nil, err
	}
	return u, nil
}

// NElems is the number of weights.
func (u *Unit) NElems() int64 { return u.nElems }

// Sizes returns the elements of each tensor, in encoding order.
func (u *Unit) Sizes() []int64 {
	sizes := make([]int64, len(u.ends))
	start := int64(0)
	for i, end := range u.ends {
		sizes[i], start = end-start, end
	}
	return sizes
}

func (a Arrays) complete() error {
	for _, r := range []*io.SectionReader{a.LUTs, a.EncodedExponent, a.SignMantissa, a.OutputPositions, a.Gaps, a.SplitPositions} {
		if r == nil {
			return errors.New("verify: Arrays lack a reader")
		}
	}
	return nil
}

// checkSizes compares the arrays' sizes before anything is allocated from them.
func (u *Unit) checkSizes() error {
	if u.nElems < 1 || u.nElems > maxElems {
		return badArray(arraySignMantissa, "%d weights; 1 to %d are possible", u.nElems, maxElems)
	}
	if n := u.arrays.SignMantissa.Size(); n != u.nElems {
		return badArray(arraySignMantissa, "%d bytes for %d weights", n, u.nElems)
	}
	if u.nStream < 1 || u.nStream > maxStream {
		return badArray(arrayEncodedExponent, "%d bytes; 1 to %d are possible", u.nStream, maxStream)
	}
	if n := u.arrays.Gaps.Size(); n != int64(u.nChunks)*gapBytes {
		return badArray(arrayGaps, "%d bytes; %d chunks need %d", n, u.nChunks, u.nChunks*gapBytes)
	}
	n := u.arrays.OutputPositions.Size()
	if n%4 != 0 || (n/4 != int64(u.nChunks) && n/4 != int64(u.nChunks)+1) {
		return badArray(arrayOutputPositions, "%d bytes; %d chunks need %d, or 4 less", n, u.nChunks, 4*(u.nChunks+1))
	}
	u.nEntries = int(n / 4)
	return nil
}

func (u *Unit) openTables() error {
	if n := u.arrays.LUTs.Size(); n > (maxTables+1)*rowBytes {
		return badArray(arrayLUTs, "%d bytes; %d are the most", n, (maxTables+1)*rowBytes)
	}
	luts, err := readAll(u.arrays.LUTs, arrayLUTs)
	if err != nil {
		return err
	}
	if u.tables, err = parseTables(luts); err != nil {
		return err
	}
	u.multi = newMultiTable(u.tables)
	return nil
}

// openPositions reads output_positions. Every chunk starts codes, except the last, into which the
// last code may only reach (docs/format.md §7).
func (u *Unit) openPositions() error {
	b, err := readAll(u.arrays.OutputPositions, arrayOutputPositions)
	if err != nil {
		return err
	}
	u.positions = make([]uint32, u.nChunks+1)
	u.positions[u.nChunks] = uint32(u.nElems)
	for i := range u.nEntries {
		u.positions[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	if p := u.positions[0]; p != 0 {
		return badAt(arrayOutputPositions, 0, "%d, must be 0", p)
	}
	if p := u.positions[u.nEntries-1]; int64(p) != u.nElems {
		return badAt(arrayOutputPositions, int64(u.nEntries-1), "%d, must be the number of weights, %d", p, u.nElems)
	}
	for i := range u.nChunks {
		n := int64(u.positions[i+1]) - int64(u.positions[i])
		switch {
		case n < 0, n == 0 && i+1 < u.nChunks:
			return badAt(arrayOutputPositions, int64(i+1), "%d after %d", u.positions[i+1], u.positions[i])
		case n > maxChunkElems:
			return badAt(arrayOutputPositions, int64(i+1), "chunk of %d weights; the kernel's shared memory holds %d", n, maxChunkElems)
		}
	}
	return nil
}

func (u *Unit) openSplit(sizes []int64) error {
	n := u.arrays.SplitPositions.Size()
	if n%8 != 0 || n/8 >= maxTensors {
		return badArray(arraySplitPositions, "%d bytes", n)
	}
	b, err := readAll(u.arrays.SplitPositions, arraySplitPositions)
	if err != nil {
		return err
	}
	last := int64(0)
	for i := range len(b) / 8 {
		end := int64(binary.LittleEndian.Uint64(b[8*i:]))
		if end < last || end > u.nElems {
			return badAt(arraySplitPositions, int64(i), "%d after %d, in a unit of %d weights", end, last, u.nElems)
		}
		u.ends, last = append(u.ends, end), end
	}
	u.ends = append(u.ends, u.nElems)
	if sizes == nil {
		return nil
	}
	return u.checkSplit(sizes)
}

// checkSplit compares the stored split positions with the sizes that the caller knows.
func (u *Unit) checkSplit(sizes []int64) error {
	if len(sizes) != len(u.ends) {
		return badArray(arraySplitPositions, "for %d tensors; the unit has %d", len(u.ends), len(sizes))
	}
	sum := int64(0)
	for i, n := range sizes {
		if n < 0 || n > u.nElems-sum {
			return fmt.Errorf("tensor %d of %d elements in a unit of %d", i, n, u.nElems)
		}
		sum += n
		if i < len(sizes)-1 && sum != u.ends[i] {
			return badAt(arraySplitPositions, int64(i), "%d, must be %d", u.ends[i], sum)
		}
	}
	if sum != u.nElems {
		return fmt.Errorf("tensors of %d elements in a unit of %d", sum, u.nElems)
	}
	return nil
}

// readAll reads a whole array whose size was checked.
func readAll(r *io.SectionReader, array string) ([]byte, error) {
	b := make([]byte, r.Size())
	if err := readAt(r, b, 0, array); err != nil {
		return nil, err
	}
	return b, nil
}

// readAt fills b from r at off; name says what r is.
func readAt(r io.ReaderAt, b []byte, off int64, name string) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %s at byte %d: %w", name, off+int64(n), err)
}
