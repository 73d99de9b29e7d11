package verify

import (
	"context"
	"slices"
)

// CheckUnread looks at the stored bits that decoding never uses, where the format decides them without encoding again
// (docs/format.md §6, §7): the tables' unused slots and lengths, the bits behind the last code, and the gaps of windows in
// which no code starts. Each difference comes back as a warning: the file decodes as it should, but the official encoder
// writes other bits. The error comes from reading, or from a last chunk that does not decode.
func (u *Unit) CheckUnread(ctx context.Context) ([]*StructureError, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b := newBlock()
	defer blocks.Put(b)
	end, err := u.decodeEnd(b)
	if err != nil {
		return nil, err
	}
	var warnings []*StructureError
	if book, foreign := readCodebook(u.tables); foreign != nil {
		warnings = append(warnings, foreign)
	} else {
		warnings = append(warnings, checkForm(u.tables.raw, book.luts()), end.checkTail(book.eof))
	}
	warnings = append(warnings, end.checkGaps())
	return slices.DeleteFunc(warnings, func(e *StructureError) bool { return e == nil }), nil
}

// checkForm compares the stored tables with the tables that the official encoder makes of the same code.
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

// streamEnd is the last chunk that starts codes, decoded, and all chunks behind it.
type streamEnd struct {
	*block
	bit int // behind the last code, from the start of the block
}

func (u *Unit) decodeEnd(b *block) (*streamEnd, error) {
	first := u.chunkAt(u.nElems - 1)
	r := chunkRange{first, u.nChunks - first}
	if err := u.load(b, r, nil); err != nil {
		return nil, err
	}
	d, c := b.chunk(&u.layout, 0), &b.codes[0]
	if !u.decodeLast(c, &d) {
		return nil, u.diagnose(c, &d, nil)
	}
	return &streamEnd{b, c.end}, nil
}

// checkTail compares the bits behind the last code with the start of the end symbol's code.
func (e *streamEnd) checkTail(eof code) *StructureError {
	nBits := -e.bit & 7
	if nBits == 0 {
		return nil
	}
	got, want := peek(e.stream, e.bit)>>(32-nBits), eof.value>>(32-nBits)
	if got != want {
		return badAt(arrayEncodedExponent, int64(e.first)*chunkBits+int64(e.bit),
			"last bits are %0*b, the official encoder writes %0*b", nBits, got, nBits, want)
	}
	return nil
}

// checkGaps looks at the gaps of windows in which no code starts. They are 0, except in the window that the last code
// reaches into and in which the end symbol's bits begin.
func (e *streamEnd) checkGaps() *StructureError {
	for w := e.codes[0].lastStart()/windowBits + 1; w < e.n*chunkWindows; w++ {
		want := 0
		if w == e.bit/windowBits && e.bit%8 != 0 {
			want = e.bit % windowBits
		}
		if got := gapAt(e.gaps, w); got != want {
			return badAt(arrayGaps, int64(e.first)*chunkWindows+int64(w), "unused gap is %d, the official encoder writes %d", got, want)
		}
	}
	return nil
}
