package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Arrays are the six stored arrays of a unit by their names, each as its bytes in the file
// (docs/format.md §8). The readers must allow concurrent ReadAt, as files and byte slices do.
type Arrays map[string]*io.SectionReader

// ArraysAt returns the arrays of a unit; at returns the array with a given name.
func ArraysAt(at func(name string) *io.SectionReader) Arrays {
	a := Arrays{}
	if at == nil {
		return a
	}
	for _, name := range arrayNames {
		a[name] = at(name)
	}
	return a
}

// Unit is a DF11 unit whose structure [Open] has checked. Goroutines may share it.
type Unit struct {
	layout
	tables *tables
	multi  *multiTable
	arrays Arrays
	ends   []int64 // running sums of the tensor sizes; the last one is nElems
}

// Open checks everything that a unit's arrays show without decoding (docs/format.md §6–§9): sizes,
// lookup tables, output positions, split positions, and the kernel's limits. sizes holds the number
// of elements of each tensor in encoding order; with nil, Open takes them from SplitPositions. A
// *[StructureError] says what is wrong with the file. Other errors come from reading. A Unit takes
// about 30 kB of memory for its tables, and 8 bytes per 4096 bytes of EncodedExponent.
func Open(a Arrays, sizes []int64) (*Unit, error) {
	for _, name := range arrayNames {
		if a[name] == nil || a[name].Size() < 0 {
			return nil, badArray(name, "missing")
		}
	}
	u := &Unit{arrays: a}
	var err error
	if u.layout, err = newLayout(a); err != nil {
		return nil, err
	}
	if u.tables, err = readTables(a); err != nil {
		return nil, err
	}
	u.multi = newMultiTable(u.tables)
	if err := u.readPositions(a); err != nil {
		return nil, err
	}
	if u.ends, err = readSplit(a, u.nElems); err != nil {
		return nil, err
	}
	if sizes != nil && !slices.Equal(sizes, u.Sizes()) {
		return nil, badArray(NameSplitPositions, "the %d tensors have other sizes", len(sizes))
	}
	return u, nil
}

// NElems returns the number of weights.
func (u *Unit) NElems() int64 {
	if u == nil {
		return 0
	}
	return u.nElems
}

// Sizes returns the number of elements of each tensor in encoding order.
func (u *Unit) Sizes() []int64 {
	if u == nil {
		return nil
	}
	sizes := make([]int64, len(u.ends))
	start := int64(0)
	for i, end := range u.ends {
		sizes[i], start = end-start, end
	}
	return sizes
}

// readSplit reads split_positions and returns where each tensor ends.
func readSplit(a Arrays, nElems int64) (ends []int64, err error) {
	n := a[NameSplitPositions].Size()
	if n%8 != 0 || n/8 >= maxTensors {
		return nil, badArray(NameSplitPositions, "%d bytes", n)
	}
	b, err := a.readAll(NameSplitPositions)
	if err != nil {
		return nil, err
	}
	last := int64(0)
	for i := range len(b) / 8 {
		end := int64(binary.LittleEndian.Uint64(b[8*i:]))
		if end < last || end > nElems {
			return nil, badAt(NameSplitPositions, int64(i), "%d after %d, in a unit of %d weights",
				end, last, nElems)
		}
		ends, last = append(ends, end), end
	}
	return append(ends, nElems), nil
}

// readAll reads a whole array whose size was checked.
func (a Arrays) readAll(name string) ([]byte, error) {
	b := make([]byte, a[name].Size())
	return b, a.read(name, b, 0)
}

// readPadded fills b from an array at off, with zeros past the end of the array.
func (a Arrays) readPadded(name string, b []byte, off int64) error {
	n := max(0, min(int64(len(b)), a[name].Size()-off))
	clear(b[n:])
	return a.read(name, b[:n], off)
}

// read fills b from an array at off.
func (a Arrays) read(name string, b []byte, off int64) error { return readAt(a[name], b, off, name) }

// readAt fills b from r at off. Errors call r name.
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
