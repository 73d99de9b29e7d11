package verify

import "cmp"

// CheckUnread checks stored bits that decoding never uses, as far as the format decides them
// without another encoding (docs/format.md §6, §7): the tables' unused slots and lengths, the gaps of
// windows in which no code starts, and the bits after the last code. The first difference is a
// warning: the file decodes correctly, but the official encoder writes other bits. The error comes
// from reading, or from a last chunk that doesn't decode.
func (u *Unit) CheckUnread() (warning *StructureError, err error) {
	if u == nil || u.nChunks == 0 {
		return nil, errNotOpen
	}
	b := newBlock()
	defer blocks.Put(b)
	first := u.chunkAt(u.nElems - 1)
	if err := u.load(b, chunkRange{first, u.nChunks - first}, nil); err != nil {
		return nil, err
	}
	d, c := b.chunk(&u.layout, 0), &b.codes[0]
	if fault := u.decodeAsKernel(c, &d); fault != nil {
		return nil, fault
	}
	end := &streamEnd{b, c.end}
	eof, warning := u.tables.checkForm()
	return cmp.Or(warning, end.checkGaps(), end.checkTail(eof)), nil
}

// checkForm compares the tables with those the official encoder makes for the same code
// (docs/format.md §6). It returns the end symbol's code, left-aligned; it takes the slots that the
// other codes leave free. Going through the tables in order, the first slot with a value is the
// real one, and the fill repeats the value before it.
func (t *tables) checkForm() (eof uint32, bad *StructureError) {
	prefixes := []tablePrefix{{}} // prefixes of the tables that slots have led to
	var seen [256]bool
	var last uint8
	var free []int
	end := 0 // end of the latest symbol's slots
	for at, v := range t.raw[:t.nTables*rowBytes] {
		if at < end || seen[v] {
			if v != last {
				return 0, badAt(NameLUTs, int64(at),
					"unused entry is %d, the official encoder writes %d", v, last)
			}
			if at >= end {
				free = append(free, at)
			}
			continue
		}
		seen[v], last = true, v
		if at/rowBytes >= len(prefixes) || v >= jumpMin && int(v) != 256-len(prefixes) {
			return 0, badAt(NameLUTs, int64(at), "not the official encoder's order of tables")
		}
		if v >= jumpMin {
			prefixes = append(prefixes, prefixes[at/rowBytes].below(at%rowBytes))
			continue
		}
		size := 1 << max(0, 8*prefixes[at/rowBytes].level+8-int(t.length[v]))
		if at%size != 0 {
			return 0, badAt(NameLUTs, int64(at),
				"symbol %d begins inside the slots of another code", v)
		}
		end = at + size
	}
	for s, l := range t.raw[t.nTables*rowBytes:] {
		if l != 0 && (s >= jumpMin || !seen[s]) {
			return 0, badAt(NameLUTs, int64(t.nTables*rowBytes+s),
				"unused entry is %d, the official encoder writes 0", l)
		}
	}
	return endSymbol(free, prefixes)
}

// tablePrefix is the common start of all codes in a table: level bytes, left-aligned.
type tablePrefix struct {
	level int
	value uint32
}

// below returns the prefix of the table that slot leads to.
func (p tablePrefix) below(slot int) tablePrefix {
	return tablePrefix{p.level + 1, p.value | uint32(slot)<<(24-8*p.level)}
}

// endSymbol returns the end symbol's code, made from the slots that belong to no other symbol.
func endSymbol(free []int, prefixes []tablePrefix) (eof uint32, bad *StructureError) {
	if len(free) == 0 {
		return 0, badArray(NameLUTs, "the code has no end symbol")
	}
	first, n := free[0], len(free)
	if free[n-1]-first != n-1 || n >= rowBytes || n&(n-1) != 0 || first%n != 0 {
		return 0, badAt(NameLUTs, int64(first), "%d slots without a code, not one end symbol", n)
	}
	return prefixes[first/rowBytes].below(first % rowBytes).value, nil
}

// streamEnd is the last chunk that starts codes, decoded, and all chunks after it.
type streamEnd struct {
	*block
	bit int // bit after the last code, counted from the start of the block
}

// checkTail compares the bits after the last code with the beginning of the end symbol's code.
func (e *streamEnd) checkTail(eof uint32) *StructureError {
	nBits := -e.bit & 7
	if nBits == 0 {
		return nil
	}
	got, want := peek(e.stream, e.bit)>>(32-nBits), eof>>(32-nBits)
	if got != want {
		return badAt(NameEncodedExponent, int64(e.first)*chunkBits+int64(e.bit),
			"last bits are %0*b, the official encoder writes %0*b", nBits, got, nBits, want)
	}
	return nil
}

// checkGaps checks the gaps of windows in which no code starts. They are 0, except in the window
// where the last code ends and the end symbol's bits begin.
func (e *streamEnd) checkGaps() *StructureError {
	for w := e.codes[0].lastStart()/windowBits + 1; w < e.n*chunkWindows; w++ {
		want := 0
		if w == e.bit/windowBits && e.bit%8 != 0 {
			want = e.bit % windowBits
		}
		if got := gapAt(e.gaps, w); got != want {
			return badAt(NameGaps, int64(e.first)*chunkWindows+int64(w),
				"unused gap is %d, the official encoder writes %d", got, want)
		}
	}
	return nil
}
