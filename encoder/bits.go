package encoder

import (
	"encoding/binary"
	"math/bits"
)

// octetBits is the length of an octet of windows: 5 bytes of gaps (docs/format.md §7). Blocks own
// the output in whole octets.
const octetBits = 8 * windowBits

// slack is how far beyond the valid bytes the bit writer and the append loops may store.
const slack = len(stretch{})

// bitWriter holds the end of the coded stream and of the mark stream. The mark stream has one bit
// for every bit of the coded stream, set where a code starts. bitWriter stores 8 bytes at a time at
// the same offset of both; the bytes after that offset are undefined.
type bitWriter struct {
	code, mark uint64 // the last n bits are not stored yet, those above are undefined
	n          uint   // 0..7 between appends
	at         int    // whole bytes written
}

// append adds n bits and their marks, n <= 56.
func (w *bitWriter) append(code, mark, n uint64, coded, marks []byte) {
	w.code = w.code<<n | code
	w.mark = w.mark<<n | mark
	w.n += uint(n)
	binary.BigEndian.PutUint64(coded[w.at:], w.code<<(64-w.n))
	binary.BigEndian.PutUint64(marks[w.at:], w.mark<<(64-w.n))
	w.at += int(w.n / 8)
	w.n %= 8
}

// pos returns the number of bits written.
func (w *bitWriter) pos() int { return 8*w.at + int(w.n) }

// flush clears the bits after the last one, up to byte end.
func (w *bitWriter) flush(end int, coded, marks []byte) {
	w.append(0, 0, uint64(-w.n%8), coded, marks)
	clear(coded[w.at:max(w.at, end)])
	clear(marks[w.at:max(w.at, end)])
}

// packGaps turns marks (whole octets) into 5-bit gaps (docs/format.md §7). A gap is the position of
// the first mark in its window, or 0 without a mark. dst needs 5 bytes per octet, and 3 more at the
// end.
func packGaps(dst, marks []byte) {
	for ; len(marks) >= octetBits/8; marks = marks[octetBits/8:] {
		var octet uint64
		for w := 0; w < octetBits/8; w += 8 {
			octet = octet<<5 | uint64(bits.LeadingZeros32(binary.BigEndian.Uint32(marks[w:]))%32)
		}
		binary.BigEndian.PutUint64(dst, octet<<24)
		dst = dst[5:]
	}
}
