package encoder

import "sync"

// maxPairBits is the longest pair of codes in a pair table. Its bits and their marks share one
// word.
const maxPairBits = 32

// tooLong is the length of a pair that the table lacks. Any sum with it exceeds the limits of the
// append loops.
const tooLong = 100

// pairTable holds the codes of two neighboring exponents in one word. The index is made of the low
// width bits of both, with the first exponent on top. The width is lowWidth if a unit's exponents
// differ in these bits. They almost always do, because they are close to each other. This table
// stays in the first-level cache. Otherwise the width is 8.
//
// A word holds the two codes in its low half and their marks in its high half: one bit at the
// position of each code's first bit. So one shift and one OR append a pair and its marks, as long
// as the sum stays within 32 bits. This sets the limits of the append loops: a group of 16 or 8
// elements may have at most 32 bits in each half, and at most 56 bits in all, because up to 7 bits
// may be waiting.
type pairTable struct {
	width uint
	words [1 << 16]uint64
	nBits [1 << 16]uint8

	// The code of one exponent by its low bits, for loops that look codes up in registers. Set only
	// at width lowWidth, and only for codes of at most maxLowBits.
	lowCodes [1 << lowWidth]uint16
	lowBits  [1 << lowWidth]uint8
}

// Limits for the codes in pairTable.lowCodes.
const (
	lowWidth   = 6
	maxLowBits = 14
)

// freeTables holds idle tables. Units share them, because most garbage of a small unit would be
// tables.
var freeTables = sync.Pool{New: func() any { return new(pairTable) }}

// newPairTable makes a table; return it to freeTables.
func newPairTable(b *codebook) *pairTable {
	t := freeTables.Get().(*pairTable)
	t.width = b.width()
	for i := range t.nBits {
		t.nBits[i] = tooLong
	}
	for i := range t.lowBits {
		t.lowBits[i] = tooLong
	}
	for _, c := range b.order {
		if c.symbol != eof {
			t.set(b, c)
		}
	}
	return t
}

// width returns how many low bits of the exponents a table needs.
func (b *codebook) width() uint {
	var taken [1 << lowWidth]bool
	for _, c := range b.order {
		if c.symbol == eof {
			continue
		}
		low := c.symbol % len(taken)
		if taken[low] {
			return 8
		}
		taken[low] = true
	}
	return lowWidth
}

// set fills the entries of a symbol and of all pairs that it begins.
func (t *pairTable) set(b *codebook, first code) {
	mask := 1<<t.width - 1
	low := first.symbol & mask
	if t.width == lowWidth && first.n <= maxLowBits {
		t.lowBits[low], t.lowCodes[low] = uint8(first.n), uint16(first.bits)
	}
	for _, second := range b.order {
		if n := first.n + second.n; second.symbol != eof && n <= maxPairBits {
			i := low<<t.width | second.symbol&mask
			t.nBits[i], t.words[i] = uint8(n), first.word()<<second.n|second.word()
		}
	}
}

// word returns a code with its mark.
func (c code) word() uint64 { return 1<<(32+c.n-1) | c.bits }

// pairMask and pairMul turn 8 bytes of four weights, shifted right by 7, into two pair indices. The
// mask leaves the low bits of each exponent in its own 16-bit field. The product has e0<<width|e1
// in bits 16 to 31 and e2<<width|e3 in bits 48 to 63.
func pairMask(width uint) uint64 { return (1<<width - 1) * 0x0001000100010001 }

func pairMul(width uint) uint64 { return 1 + 1<<(16+width) }
