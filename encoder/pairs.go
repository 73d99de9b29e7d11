package encoder

import "sync"

// maxPairBits is the longest pair of codes in a pair table. Its bits and their marks share one
// word.
const maxPairBits = 32

// tooLong is the length of a pair that the table lacks. Any sum with it exceeds the limits of the
// append loops.
const tooLong = 100

// pairWidths are the widths of pair tables. The small table stays in the first-level cache and
// serves most blocks, because their exponents are close to each other. The large one serves every
// block.
var pairWidths = [...]uint{lowWidth, 8}

// pairTable holds the codes of two neighboring exponents in one word. The index is made of the low
// width bits of both, with the first exponent on top. If width is below 8, exponents with the same
// low bits share entries. One of them owns the entries, and the table serves only blocks without
// the others.
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

// pairTables has one entry for each of pairWidths: a table, or nil.
type pairTables [len(pairWidths)]*pairTable

// freeTables holds idle tables. Units share them, because most garbage of a small unit would be
// tables.
var freeTables = sync.Pool{New: func() any { return new(pairTable) }}

// giveBack returns the tables to freeTables.
func (ts pairTables) giveBack() {
	for _, t := range ts {
		if t != nil {
			freeTables.Put(t)
		}
	}
}

// newPairTable makes a table of the given width, at most 8. Entries beyond its indices may be left
// from an earlier use.
func newPairTable(b *codebook, o *owners, width uint) *pairTable {
	t := freeTables.Get().(*pairTable)
	t.width = width
	for i := range 1 << (2 * width) {
		t.setPair(b, i, o[i>>width], o[i&(1<<width-1)])
	}
	if width == lowWidth {
		t.setLow(b, o)
	}
	return t
}

// owners holds the most frequent exponent for every value of the low bits, or -1.
type owners [256]int

func newOwners(total *histogram, width uint) *owners {
	var o owners
	for i := range o {
		o[i] = -1
	}
	for s, n := range total {
		i := s & (1<<width - 1)
		if n > 0 && (o[i] < 0 || n > total[o[i]]) {
			o[i] = s
		}
	}
	return &o
}

// serve reports whether every exponent in a block with these counts is an owner.
func (o *owners) serve(counts *[256]uint32, width uint) bool {
	for s, n := range counts {
		if n > 0 && o[s&(1<<width-1)] != s {
			return false
		}
	}
	return true
}

// setLow fills lowCodes.
func (t *pairTable) setLow(b *codebook, o *owners) {
	for i := range t.lowBits {
		t.lowCodes[i], t.lowBits[i] = 0, tooLong
		if s := o[i]; s >= 0 && b.nBits[s] <= maxLowBits {
			t.lowBits[i], t.lowCodes[i] = b.nBits[s], uint16(b.bits[s])
		}
	}
}

// setPair fills entry i with the codes of two symbols.
func (t *pairTable) setPair(b *codebook, i, s0, s1 int) {
	t.words[i], t.nBits[i] = 0, tooLong
	if s0 < 0 || s1 < 0 || b.nBits[s0]+b.nBits[s1] > maxPairBits {
		return
	}
	t.nBits[i] = b.nBits[s0] + b.nBits[s1]
	t.words[i] = b.word(s0)<<b.nBits[s1] | b.word(s1)
}

// word returns the code of a symbol with its mark.
func (b *codebook) word(s int) uint64 { return 1<<(32+b.nBits[s]-1) | uint64(b.bits[s]) }

// pairMask and pairMul turn 8 bytes of four weights, shifted right by 7, into two pair indices. The
// mask leaves the low bits of each exponent in its own 16-bit field. The product has e0<<width|e1
// in bits 16 to 31 and e2<<width|e3 in bits 48 to 63.
func pairMask(width uint) uint64 { return (1<<width - 1) * 0x0001000100010001 }

func pairMul(width uint) uint64 { return 1 + 1<<(16+width) }
