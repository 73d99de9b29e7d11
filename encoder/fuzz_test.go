package encoder

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// FuzzEncode compares every variant with the plain encoder, for any block size, on codes that don't
// fit the data. Histograms with very different counts make long codes, and the data uses them in any
// frequency.
func FuzzEncode(f *testing.F) {
	f.Add([]byte{120, 1, 121, 2, 122, 3, 119, 40, 118, 41}, []byte{0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 0, 0, 0}, uint16(300), uint16(37))
	f.Add(bytes.Repeat([]byte{7, 30, 9, 28, 77, 1, 200, 12}, 9), []byte("adversarial histograms"), uint16(8000), uint16(1000))
	fibonacci := make([]byte, 0, 80)
	for i := range byte(40) {
		fibonacci = append(fibonacci, 100+i, i)
	}
	f.Add(fibonacci, []byte{39, 38, 39, 0, 39, 1, 39, 39, 39, 39, 39, 39, 39, 39, 39, 39, 39, 39}, uint16(5000), uint16(0))
	f.Fuzz(func(t *testing.T, counts, picks []byte, n, block uint16) {
		var h histogram
		for ; len(counts) >= 2; counts = counts[2:] {
			h[counts[0]] = uint64(1) << (counts[1] % 44)
		}
		list := h.entries()
		if len(list) == 0 || len(picks) == 0 {
			return
		}
		symbols := make([]byte, int(n)%8192+1)
		for i := range symbols {
			symbols[i] = byte(list[int(picks[i%len(picks)])%len(list)].symbol)
		}
		book, bf16 := buildCodebook(&h), plain.Weights(symbols)
		for _, l := range variants() {
			mustEncode(t, options{loops: &l}, book, bf16, l.name)
			mustEncode(t, options{loops: &l, block: max(int(block), len(symbols)/500, 1)}, book, bf16, l.name)
		}
	})
}

// FuzzCodebook builds codes for any counts. It checks what every prefix code must satisfy, and that
// EOF and the limiter follow docs/format.md §4 and §5.
func FuzzCodebook(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0})
	f.Add(bytes.Repeat([]byte{9, 255, 255, 255, 255, 1, 0, 0}, 3))
	fibonacci, a, b := []byte{}, uint64(1), uint64(1)
	for i := range byte(40) {
		fibonacci = binary.LittleEndian.AppendUint64(fibonacci, a<<8|uint64(80+i))
		a, b = b, a+b
	}
	f.Add(fibonacci)
	f.Fuzz(func(t *testing.T, p []byte) {
		var h histogram
		for ; len(p) >= 8; p = p[8:] {
			h[p[0]] = binary.LittleEndian.Uint64(p) >> 8 % (1 << 31)
		}
		if len(h.entries()) > 0 {
			checkCodebook(t, &h)
		}
	})
}

func checkCodebook(t *testing.T, h *histogram) {
	book := buildCodebook(h)
	var next uint64 // the codes in table order fill the space from 0 without gaps
	for _, c := range book.order {
		if c.n < 1 || c.n > maxCodeBits {
			t.Fatalf("symbol %d has %d bits", c.symbol, c.n)
		}
		if c.bits<<(maxCodeBits-c.n) != next {
			t.Fatalf("code %b of symbol %d is out of order", c.bits, c.symbol)
		}
		next += 1 << (maxCodeBits - c.n)
	}
	if next != 1<<maxCodeBits || len(book.order) != len(h.entries())+1 {
		t.Fatalf("%d codes fill %d of %d", len(book.order), next, uint64(1)<<maxCodeBits)
	}
	longest := slices.MaxFunc(book.order, func(a, b code) int { return a.n - b.n })
	if longest.n != book.eof.n {
		t.Fatalf("end symbol has %d bits, the longest code %d", book.eof.n, longest.n)
	}
}
