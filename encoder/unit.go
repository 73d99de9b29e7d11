package encoder

import "encoding/binary"

// Unit is the result of pass 1: the codebook, the tables, the exact size of every tensor, and the
// offset of every block in the coded stream. Goroutines may share it.
type Unit struct {
	sizes  []int64
	nElems int64
	block  int64
	loops  *loops

	book    *codebook
	total   *histogram
	rows    []byte  // luts
	offset  []int64 // bit offset of every block, and of the end
	nMarked int     // chunks with an output position
}

// Stats describes a unit for plans and reports.
type Stats struct {
	Histogram [256]uint64 // by exponent
	NBits     int64       // length of the coded stream without its tail
	// TieBroken reports that the limiter last chose among equal counts. The official bytes then
	// depend on the machine's numpy; ours follow §5.1.
	TieBroken bool
}

// unit computes the unit's layout for a codebook that has a code for every symbol.
func (c *Counter) unit(book *codebook, total *histogram, rows []byte) *Unit {
	u := &Unit{sizes: c.sizes, nElems: c.nElems, block: c.block, loops: c.loops, book: book,
		total: total, rows: rows}
	u.offset = make([]int64, 1, len(c.counts)+1)
	var end int64
	for b := range c.counts {
		for s, n := range c.counts[b] {
			end += int64(n) * int64(book.nBits[s])
		}
		u.offset = append(u.offset, end)
	}
	u.nMarked = u.countMarked(c.last)
	return u
}

// nBits returns T without the tail (docs/format.md §7).
func (u *Unit) nBits() int64 { return u.offset[len(u.offset)-1] }

// countMarked returns how many chunks have an output position: the chunk with the last mark, and
// all before it. If there is a tail, the last mark is the tail's; otherwise it's where the last
// code starts (docs/format.md §7).
func (u *Unit) countMarked(last byte) int {
	mark := u.nBits()
	if mark%8 == 0 {
		mark -= int64(u.book.nBits[last])
	}
	return int(mark/chunkBits) + 1
}

// overfull reports whether some chunk must hold more weights than shared memory allows
// (docs/format.md §9), no matter how the weights are ordered within the blocks. Consecutive blocks
// with n weights in L bits touch fewer than L/chunkBits + 2 chunks, so n can't exceed maxPerChunk
// times that. The maximum subarray is the sequence of blocks with the largest excess.
func (u *Unit) overfull() bool {
	var excess int64
	for b := range len(u.offset) - 1 {
		first, end := blockRange(int64(b), u.block, u.nElems)
		gain := (end-first)*chunkBits - (u.offset[b+1]-u.offset[b])*maxPerChunk
		excess = max(excess, 0) + gain
		if excess > 2*maxPerChunk*chunkBits {
			return true
		}
	}
	return false
}

// nBytes returns B (docs/format.md §7).
func (u *Unit) nBytes() int64 { return (u.nBits() + 7) / 8 }

// Stats returns the unit's figures.
func (u *Unit) Stats() Stats {
	if u == nil || u.book == nil {
		return Stats{}
	}
	return Stats{Histogram: *u.total, NBits: u.nBits(), TieBroken: u.book.tied}
}

// splitPositions returns the running sums of the sizes without the last one (docs/format.md §8).
func (u *Unit) splitPositions() []int64 {
	list := make([]int64, 0, len(u.sizes))
	var sum int64
	for _, n := range u.sizes[:len(u.sizes)-1] {
		sum += n
		list = append(list, sum)
	}
	return list
}

// Tensors describes the six arrays with their exact sizes.
func (u *Unit) Tensors() []StoredTensor { return u.counts().Stored() }

func (u *Unit) counts() Counts {
	if u == nil || u.book == nil {
		return Counts{Tensors: 1}
	}
	return Counts{
		Rows:    int64(len(u.rows) / lutSlots),
		Coded:   u.nBytes(),
		Elems:   u.nElems,
		Marked:  int64(u.nMarked),
		Tensors: int64(len(u.sizes)),
	}
}

// littleEndian returns the bytes of a list as the format stores it.
func littleEndian[T uint32 | int64](list []T) []byte {
	// binary.Append fails only for types without a fixed size.
	b, _ := binary.Append(nil, binary.LittleEndian, list)
	return b
}
