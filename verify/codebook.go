package verify

import (
	"cmp"
	"math/bits"
	"slices"
)

// code is one code of a unit's code table: nBits bits, left-aligned in value.
type code struct {
	symbol uint8
	nBits  int
	value  uint32
}

// codebook is the Huffman code that lookup tables stand for.
type codebook struct {
	codes []code // in the order of their values
	eof   code   // the end symbol, docs/format.md §4; symbol is meaningless
}

// readCodebook reads the code back out of tables in the form of the official encoder (docs/format.md §6). Tables of
// another form are a *StructureError; they may still decode.
func readCodebook(t *tables) (*codebook, *StructureError) {
	r := codebookReader{tables: t}
	r.prefix[0].known = true
	for i := range t.nTables {
		if !r.prefix[i].known {
			return nil, badAt(arrayLUTs, int64(i*rowBytes), "no earlier table leads to table %d", i)
		}
		for s := 0; s < rowBytes; {
			s += r.take(i, s)
		}
	}
	if err := r.takeEOF(); err != nil {
		return nil, err
	}
	slices.SortFunc(r.book.codes, func(a, b code) int { return cmp.Compare(a.value, b.value) })
	return &r.book, nil
}

// codebookReader is the state of readCodebook.
type codebookReader struct {
	tables *tables
	book   codebook
	prefix [maxTables]struct { // what leads to a table
		value uint32
		level int
		known bool
	}
	seen  [256]bool // table values met
	holes []int     // bytes of luts that belong to no symbol
}

// take reads the range of slots that starts at slot s of table i, and returns how many it has. The
// first occurrence of a value, in the order of the tables, is the real one; the fill only repeats.
func (r *codebookReader) take(i, s int) int {
	v, prefix := r.tables.rows[i][s], r.prefix[i]
	value := prefix.value | uint32(s)<<(24-8*prefix.level)
	if r.seen[v] {
		r.holes = append(r.holes, i*rowBytes+s)
		return 1
	}
	if v >= jumpMin {
		r.seen[v] = true
		below := &r.prefix[256-int(v)]
		below.value, below.level, below.known = value, prefix.level+1, true
		return 1
	}
	nBits := int(r.tables.length[v])
	size := 1 << max(0, 8*prefix.level+8-nBits)
	if nBits <= 8*prefix.level || s+size > rowBytes {
		r.holes = append(r.holes, i*rowBytes+s)
		return 1
	}
	r.seen[v] = true
	r.book.codes = append(r.book.codes, code{v, nBits, value})
	return size
}

// takeEOF makes the end symbol's code of the slots that belong to no other symbol.
func (r *codebookReader) takeEOF() *StructureError {
	if len(r.holes) == 0 {
		return badArray(arrayLUTs, "the code has no end symbol")
	}
	first, n := r.holes[0], len(r.holes)
	if last := r.holes[n-1]; last-first != n-1 || n&(n-1) != 0 || first%n != 0 {
		return badAt(arrayLUTs, int64(first), "%d slots without a code, not one end symbol", n)
	}
	prefix := r.prefix[first/rowBytes]
	r.book.eof = code{
		nBits: 8*prefix.level + 8 - bits.TrailingZeros(uint(n)),
		value: prefix.value | uint32(first%rowBytes)<<(24-8*prefix.level),
	}
	return nil
}

// luts builds the stored form of the tables (docs/format.md §6); nil if the end symbol comes first: that has no stored form.
func (b *codebook) luts() []byte {
	if b.eof.value == 0 && b.eof.nBits <= 8 {
		return nil
	}
	prefixes := b.prefixes()
	luts := make([]byte, (len(prefixes)+1)*rowBytes)
	running := uint8(0)
	for i, p := range prefixes {
		direct := b.row(p, prefixes)
		for s := range rowBytes {
			if direct[s] >= 0 {
				running = uint8(direct[s])
			}
			luts[i*rowBytes+s] = running
		}
	}
	for _, c := range b.codes {
		luts[len(prefixes)*rowBytes+int(c.symbol)] = uint8(c.nBits)
	}
	return luts
}

// tablePrefix is the common start of all codes of a table: nBits bits, left-aligned.
type tablePrefix struct {
	nBits int
	value uint32
}

func (p tablePrefix) of(value uint32) bool { return p.nBits == 0 || (value^p.value)>>(32-p.nBits) == 0 }

// prefixes lists the tables that the code needs, in their stored order.
func (b *codebook) prefixes() []tablePrefix {
	list := []tablePrefix{{}}
	for _, c := range b.codes {
		for n := 8; n < c.nBits; n += 8 {
			list = append(list, tablePrefix{n, c.value >> (32 - n) << (32 - n)})
		}
	}
	slices.SortFunc(list, func(a, b tablePrefix) int {
		return cmp.Or(cmp.Compare(a.nBits, b.nBits), cmp.Compare(a.value, b.value))
	})
	return slices.Compact(list)
}

// row gives the slots of a table that are set directly; the others are -1.
func (b *codebook) row(p tablePrefix, all []tablePrefix) [rowBytes]int {
	var row [rowBytes]int
	for s := range row {
		row[s] = -1
	}
	for _, c := range b.codes {
		if !p.of(c.value) || c.nBits <= p.nBits {
			continue
		}
		slot := c.value << p.nBits >> 24
		if c.nBits <= p.nBits+8 {
			row[slot] = int(c.symbol)
			continue
		}
		n := p.nBits + 8
		row[slot] = 256 - slices.Index(all, tablePrefix{n, c.value >> (32 - n) << (32 - n)})
	}
	return row
}
