package encoder

import (
	"encoding/binary"
	"math/bits"
)

// octetBits is the length of an octet of windows, the unit in which blocks own the output: 5 bytes
// of gaps, docs/format.md §7.
const octetBits = 8 * windowBits

// slack is how far the bit writer and the append loops may store beyond the bytes that count.
const slack = len(stretch{})

// bitWriter holds the end of the coded stream and, in step with it, of the mark stream: one bit per
// bit, set where a code starts. It stores 8 bytes at a time at the same offset of both; what lies
// behind that offset is void.
type bitWriter struct {
	code, mark uint64 // the last n bits are waiting, what is above them is void
	n          uint   // 0..7 between appends
	at         int    // whole bytes written
}

// append adds n bits, 0 < n <= 56, and their marks.
func (w *bitWriter) append(code, mark, n uint64, coded, marks []byte) {
	w.code = w.code<<n | code
	w.mark = w.mark<<n | mark
	w.n += uint(n)
	binary.BigEndian.PutUint64(coded[w.at:], w.code<<(64-w.n))
	binary.BigEndian.PutUint64(marks[w.at:], w.mark<<(64-w.n))
	w.at += int(w.n / 8)
	w.n %= 8
}

// pos is the number of bits written.
func (w *bitWriter) pos() int { return 8*w.at + int(w.n) }

// flush clears the bits behind the last one up to byte end.
func (w *bitWriter) flush(end int, coded, marks []byte) {
	at := w.at
	if w.n > 0 {
		coded[at] = byte(w.code << (8 - w.n))
		marks[at] = byte(w.mark << (8 - w.n))
		at++
	}
	if at < end {
		clear(coded[at:end])
		clear(marks[at:end])
	}
}

// packGaps turns marks, whole octets, into 5-bit gaps, docs/format.md §7: a gap is the place of the
// first mark in its window, 0 if there is none. dst needs 5 bytes per octet and 3 beyond.
func packGaps(dst, marks []byte) {
	for ; len(marks) >= octetBits/8; marks = marks[octetBits/8:] {
		var octet uint64
		for w := 0; w < octetBits/8; w += 8 {
			gap := uint64(firstMark[marks[w]])
			if gap == 8 { // rare, a code of 8 bits or more
				gap = uint64(bits.LeadingZeros32(binary.BigEndian.Uint32(marks[w:])) % 32)
			}
			octet = octet<<5 | gap
		}
		binary.BigEndian.PutUint64(dst, octet<<24)
		dst = dst[5:]
	}
}

// firstMark is the place of the first mark in a byte, 8 if there is none.
var firstMark = func() (first [256]uint8) {
	for b := range first {
		first[b] = uint8(bits.LeadingZeros8(uint8(b)))
	}
	return first
}()
