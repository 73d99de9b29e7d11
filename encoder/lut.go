package encoder

import (
	"cmp"
	"fmt"
	"slices"
)

// prefix is the part of a code that leads to a table: its first nBytes bytes (docs/format.md §6).
type prefix struct {
	nBytes int
	bits   uint64
}

// table returns the prefix of the table in which the code ends.
func (c code) table() prefix {
	nBytes := (c.n - 1) / 8
	return prefix{nBytes, c.bits >> (c.n - 8*nBytes)}
}

func comparePrefix(a, b prefix) int {
	return cmp.Or(cmp.Compare(a.nBytes, b.nBytes), cmp.Compare(a.bits, b.bits))
}

// prefixes lists the tables that the code needs, by length and then lexicographically. The empty
// prefix is always table 0. EOF needs no table.
func (b *codebook) prefixes() []prefix {
	list := []prefix{{}}
	for _, c := range b.order {
		if c.symbol != eof {
			list = append(list, c.table())
		}
	}
	slices.SortFunc(list, comparePrefix)
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
		value, set := b.directSlots(tables, p)
		if t == 0 && !set[0] {
			return nil, false
		}
		for s := range lutSlots {
			if set[s] {
				running = value[s]
			}
			rows = append(rows, running)
		}
	}
	return append(rows, b.nBits[:]...), true
}

// directSlots returns the first slot of every code that passes through the table of prefix p. Its
// value is the symbol if the code ends there. Otherwise it's the jump to the next table, counted
// down from 256.
func (b *codebook) directSlots(tables []prefix,
	p prefix) (value [lutSlots]byte, set [lutSlots]bool) {
	for _, c := range b.order {
		if c.symbol == eof || c.n <= 8*p.nBytes || c.bits>>(c.n-8*p.nBytes) != p.bits {
			continue
		}
		rest := c.n - 8*p.nBytes
		var slot uint64
		v := byte(c.symbol)
		if rest <= 8 {
			slot = c.bits << (8 - rest) & 0xff
		} else {
			slot = c.bits >> (rest - 8) & 0xff
			next := prefix{p.nBytes + 1, p.bits<<8 | slot}
			t, found := slices.BinarySearchFunc(tables, next, comparePrefix)
			if !found {
				panic(fmt.Sprintf("encoder: internal error: no table for prefix %v", next))
			}
			v = byte(lutSlots - t)
		}
		value[slot], set[slot] = v, true
	}
	return value, set
}
