package encoder

import "slices"

// prefix is the part of a code that leads to a table (docs/format.md §6): its first bytes,
// left-aligned in the low 32 bits, and above them how many bytes these are. So prefixes are in the
// order of the tables.
type prefix uint64

// prefix returns the first nBytes bytes of a code.
func (c code) prefix(nBytes int) prefix {
	whole := c.bits << (maxCodeBits - c.n)
	return prefix(uint64(nBytes)<<32 | whole>>(32-8*nBytes)<<(32-8*nBytes))
}

// level returns how many bytes lead to the table in which the code ends.
func (c code) level() int { return (c.n - 1) / 8 }

// slot returns the byte after the first nBytes bytes of a code.
func (c code) slot(nBytes int) int {
	return int(byte(c.bits << (maxCodeBits - c.n) >> (24 - 8*nBytes)))
}

// prefixes lists the tables that the code needs, by length and then lexicographically. The empty
// prefix is always table 0. EOF needs no table.
func (b *codebook) prefixes() []prefix {
	list := []prefix{0}
	for _, c := range b.order {
		if c.symbol != eof {
			list = append(list, c.prefix(c.level()))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// luts builds the lookup tables of docs/format.md §6: 256 bytes per row, and the code lengths as
// the last row. ok is false if the official compressor would crash because the first table has no
// entry for slot 0.
func (b *codebook) luts() (rows []byte, ok bool) {
	tables := b.prefixes()
	rows = make([]byte, 0, lutSlots*(len(tables)+1))
	var running byte // §6, leak rule: never reset between tables
	for t, p := range tables {
		direct := b.directSlots(tables, p)
		if _, set := direct[0]; t == 0 && !set {
			return nil, false
		}
		for s := range lutSlots {
			if v, set := direct[s]; set {
				running = v
			}
			rows = append(rows, running)
		}
	}
	return append(rows, b.nBits[:]...), true
}

// directSlots returns the first slot of every code that passes through the table of prefix p. Its
// value is the symbol if the code ends there. Otherwise it's the jump to the next table, counted
// down from 256.
func (b *codebook) directSlots(tables []prefix, p prefix) map[int]byte {
	slots := map[int]byte{}
	level := int(p >> 32)
	for _, c := range b.order {
		switch end := c.level(); {
		case c.symbol == eof || end < level || c.prefix(level) != p:
		case end == level:
			slots[c.slot(level)] = byte(c.symbol)
		default:
			next, _ := slices.BinarySearch(tables, c.prefix(level+1))
			slots[c.slot(level)] = byte(lutSlots - next)
		}
	}
	return slots
}
