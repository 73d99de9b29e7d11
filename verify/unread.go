package verify

import "context"

// CheckUnread looks at the stored bits that decoding never uses, where the format decides them
// without encoding again (docs/format.md §6, §7): the tables' unused slots and lengths, the bits behind
// the last code, and the gaps of windows in which no code starts. A difference means that the file
// decodes as it should but is not what the official encoder writes; each comes back as a warning. The
// error is that of reading, or of a last chunk that does not decode.
func (u *Unit) CheckUnread(ctx context.Context) ([]*StructureError, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var warnings []*StructureError
	warn := func(e *StructureError) {
		if e != nil {
			warnings = append(warnings, e)
		}
	}
	b, end, err := u.decodeEnd()
	if err != nil {
		return nil, err
	}
	book, foreign := readCodebook(u.tables)
	if foreign != nil {
		warn(foreign)
	} else {
		warn(checkForm(u.tables.raw, book.luts()))
		warn(u.checkTail(b, end, book.eof))
	}
	warn(u.checkUnreadGaps(b, end))
	return warnings, nil
}

// checkForm compares the stored tables with those that the encoder makes of the same code.
func checkForm(stored, want []byte) *StructureError {
	if len(stored) != len(want) {
		return badArray(arrayLUTs, "%d rows, the code needs %d", len(stored)/rowBytes, len(want)/rowBytes)
	}
	for i, v := range stored {
		if v != want[i] {
			return badAt(arrayLUTs, int64(i), "unused entry is %d, the official encoder writes %d", v, want[i])
		}
	}
	return nil
}

// decodeEnd decodes the last chunk that starts codes. The block holds it and all behind it; end is
// the bit in it behind the last code.
func (u *Unit) decodeEnd() (b *block, end int, err error) {
	r := chunkRange{u.chunkAt(u.nElems - 1), 1}
	r.n = u.nChunks - r.first
	first, last := u.span(r)
	b = newBlock(r.n, int(last-first))
	if err := u.load(b, r, nil); err != nil {
		return nil, 0, err
	}
	d, c := u.chunkOf(b, 0), &b.codes[0]
	if !u.decodeLast(c, &d) {
		return nil, 0, u.diagnose(c, &d, nil)
	}
	return b, c.end, nil
}

// checkTail compares the bits behind the last code with the start of the end symbol's code.
func (u *Unit) checkTail(b *block, end int, eof code) *StructureError {
	nBits := -end & 7
	if nBits == 0 {
		return nil
	}
	got, want := peek(b.stream, end)>>(32-nBits), eof.value>>(32-nBits)
	if got != want {
		return badAt(arrayEncodedExponent, int64(b.first)*chunkBits+int64(end), "last bits are %0*b, the official encoder writes %0*b",
			nBits, got, nBits, want)
	}
	return nil
}

// checkUnreadGaps looks at the gaps of windows in which no code starts. They are 0, but for the
// window that the last code reaches into and in which the end symbol's bits begin.
func (u *Unit) checkUnreadGaps(b *block, end int) *StructureError {
	for w := b.codes[0].lastStart()/windowBits + 1; w < b.n*chunkWindows; w++ {
		want := 0
		if w == end/windowBits && end%8 != 0 {
			want = end % windowBits
		}
		if got := gapAt(b.gaps, w); got != want {
			return badAt(arrayGaps, int64(b.first)*chunkWindows+int64(w), "unused gap is %d, the official encoder writes %d", got, want)
		}
	}
	return nil
}
