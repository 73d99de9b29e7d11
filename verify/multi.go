package verify

import "slices"

const (
	// index width: the 2048 entries of 8 and 2 bytes fill half of a first-level cache; one more bit
	// gains little
	multiBits = 11
	multiMax  = 6 // symbols in an entry

	multiTopShift   = 48
	multiCountShift = 8 // within the top
)

// A multiTable decodes several whole codes per lookup.
type multiTable struct {
	// entry has up to multiMax symbols, the first in the low byte. The low byte of its top 16 bits
	// is the number of bits of all its codes, so a shift by the top skips these codes. The high
	// byte is the number of codes. Both are 0 if the first code doesn't end inside the index.
	entry [1 << multiBits]uint64

	// starts has one bit for each of the entry's bits, the first on top. It's set where a code
	// starts.
	starts [1 << multiBits]uint16
}

// newMultiTable builds the table by walking the stored tables, so both decode the same.
func newMultiTable(t *tables) *multiTable {
	m := new(multiTable)
	for i := range m.entry {
		m.entry[i], m.starts[i] = t.multiEntry(uint(i))
	}
	return m
}

// multiEntry returns the entry for the multiBits bits in index.
func (t *tables) multiEntry(index uint) (entry uint64, starts uint16) {
	var symbols uint64
	nBits, n := 0, 0
	for n < multiMax {
		rest := index & (1<<(multiBits-nBits) - 1)
		symbol, l := t.prefixCode(rest, multiBits-nBits)
		if l == 0 {
			break
		}
		symbols |= uint64(symbol) << (8 * n)
		starts = starts<<l | 1<<(l-1)
		nBits += l
		n++
	}
	return symbols | uint64(nBits|n<<multiCountShift)<<multiTopShift, starts
}

// prefixCode finds the code at the start of nBits bits. The tables may have holes, so a code is
// known only if every continuation of the bits leads to the same table entry. (If the bits were
// padded with zeros, the hole of the end symbol would look like its neighbor.) l = 0 means that the
// code isn't known.
func (t *tables) prefixCode(bits uint, nBits int) (symbol uint8, l int) {
	row, left := 0, nBits
	for left >= 8 {
		v := t.rows[row][uint8(bits>>(left-8))]
		if v < jumpMin {
			return t.fits(v, nBits)
		}
		row, left = 256-int(v), left-8
		if row >= t.nTables {
			return 0, 0
		}
	}
	first := int(uint8(bits << (8 - left)))
	slots := t.rows[row][first : first+1<<(8-left)]
	if !slices.Equal(slots[1:], slots[:len(slots)-1]) {
		return 0, 0
	}
	return t.fits(slots[0], nBits)
}

// fits returns the length of a symbol's code if it is at most nBits, and 0 otherwise.
func (t *tables) fits(v uint8, nBits int) (symbol uint8, l int) {
	if l = int(t.length[v]); v >= jumpMin || l > nBits {
		return 0, 0
	}
	return v, l
}
