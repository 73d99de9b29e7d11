package verify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// TestStreamsEndAnywhere ends a stream at each bit around the end of a chunk. With the last code's
// end behind it, the rules for the last entry of output_positions are others.
func TestStreamsEndAnywhere(t *testing.T) {
	exponents := make([]byte, 1<<14)
	for i := range exponents {
		exponents[i] = 120
		if i%2 == 0 {
			exponents[i] = uint8(121 + i%7)
		}
	}
	bf16 := plain.Weights(exponents)
	codes := codesOf(bf16)
	length := map[uint8]int{}
	for _, c := range codes {
		if c.Symbol >= 0 {
			length[uint8(c.Symbol)] = len(c.Bits)
		}
	}
	ends := map[int]bool{} // bits behind the end of the first chunk at which a last code ended
	for shift := range 8 {
		rotated := append(bytes.Clone(bf16[2*shift:]), bf16[:2*shift]...)
		start := 0
		for n := range len(exponents) {
			end := start + length[exponents[(n+shift)%len(exponents)]]
			if start < chunkBits && end > chunkBits-16 {
				ends[end-chunkBits] = true
				mustPass(t, storedUnit(plain.Encode(codes, []int64{int64(n + 1)}, rotated[:2*n+2])))
			}
			start = end
		}
	}
	for behind := range 3 {
		if !ends[behind] {
			t.Errorf("no code ended %d bits behind the chunk: %v", behind, ends)
		}
	}
}

// TestHangingBits decodes bits that aren't a code, which the tables allow in the slots of the leak
// rule: a GPU would look them up forever. They are among the codes, or after the last one, where no
// weight is wrong.
func TestHangingBits(t *testing.T) {
	// 0 is a code; after 1 and any seven bits, 1 goes on to another code, and 0 leads back
	luts := lutsOf(map[uint8]uint8{7: 1, 8: 9}, map[int]uint8{0: 7, 128: 255}, map[int]uint8{0: 255, 128: 8})
	for _, x := range []struct {
		stream  byte
		weights int
		pos     int64 // of the bits; -1 if there are none
	}{
		{0b0000_0000, 4, -1}, {0b0000_1000, 4, 4}, {0b0000_0001, 4, 7}, {0b0000_1000, 5, 4}, {0b1000_0000, 1, 0},
	} {
		s := &stored{luts: luts, stream: []byte{x.stream}, sm: make([]byte, x.weights), gaps: make([]byte, gapBytes),
			sizes: []int64{int64(x.weights)}, source: plain.Weights(bytes.Repeat([]byte{7}, x.weights))}
		copy(s.sm, plain.SignMantissa(s.source))
		s.positions = binary.LittleEndian.AppendUint32(make([]byte, 4), uint32(x.weights))
		err := s.compare(CompareOptions{})
		var bad *StructureError
		if errors.As(err, &bad) != (x.pos >= 0) || bad != nil && (bad.Array != NameEncodedExponent || bad.Pos != x.pos) {
			t.Errorf("%08b with %d weights: %v", x.stream, x.weights, err)
		}
	}
}

// TestFirstGapOfTheNextChunk changes the gap that says where a chunk's first code starts. The chunk
// before it, whose last code ends there, is the first that contradicts it.
func TestFirstGapOfTheNextChunk(t *testing.T) {
	s := encode(plain.Normal(200_000, 3))
	for chunk := 1; chunk < 5; chunk++ {
		c := s.clone()
		c.gaps[chunk*gapBytes] ^= 0x08 // the last of its five bits
		var bad *StructureError
		if err := c.compare(CompareOptions{}); !errors.As(err, &bad) || bad.Array != NameGaps || bad.Pos != int64(chunk)*chunkWindows {
			t.Errorf("chunk %d: %v", chunk, err)
		}
	}
}

// TestTablesOfAnotherEncoder checks tables that decode, and that the official encoder wouldn't
// make: CheckUnread's warning names the first place, and no end symbol is derived from them.
func TestTablesOfAnotherEncoder(t *testing.T) {
	for name, x := range map[string]struct {
		luts []byte
		pos  int64
	}{
		"tables in another order": {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 9}, map[int]uint8{0: 7, 254: 254, 255: 255}, map[int]uint8{0: 8}, map[int]uint8{0: 9}), 254},
		"no end symbol":           {lutsOf(map[uint8]uint8{7: 1, 8: 1}, map[int]uint8{0: 7, 128: 8}), -1},
		"slots for two codes":     {lutsOf(map[uint8]uint8{7: 1, 8: 3}, map[int]uint8{0: 7, 128: 8}), 160},
		"slots in two places":     {lutsOf(map[uint8]uint8{7: 2, 8: 3, 9: 3, 10: 2}, map[int]uint8{0: 7, 96: 8, 128: 9, 192: 10}), 64},
		"slots of no code":        {lutsOf(map[uint8]uint8{7: 2, 8: 3, 9: 3, 10: 2}, map[int]uint8{0: 7, 64: 8, 160: 9, 192: 10}), 96},
		"a code off its slots":    {lutsOf(map[uint8]uint8{7: 2, 8: 1}, map[int]uint8{0: 7, 64: 8}), 64},
		"a length of no symbol":   {lutsOf(map[uint8]uint8{7: 1, 8: 2, 9: 2}, map[int]uint8{0: 7, 128: 8}), rowBytes + 9},
		"a wrong fill":            {lutsOf(map[uint8]uint8{7: 1, 8: 2}, map[int]uint8{0: 7, 128: 8, 200: 7, 201: 8}), 200},
	} {
		tab, err := parseTables(x.luts)
		must(t, err)
		if _, bad := tab.checkForm(); bad == nil || bad.Array != NameLUTs || bad.Pos != x.pos {
			t.Errorf("%s: %s", name, fmt.Sprint(bad))
		}
	}
	tab, err := parseTables(lutsOf(map[uint8]uint8{7: 1, 8: 2}, map[int]uint8{0: 7, 128: 8}))
	must(t, err)
	if eof, bad := tab.checkForm(); bad != nil || eof != 0xc000_0000 {
		t.Errorf("the code 11 ends a stream, not %08x: %v", eof, bad)
	}
}

// TestUnreadCantBeRead checks that CheckUnread says nothing about bytes that it couldn't read.
func TestUnreadCantBeRead(t *testing.T) {
	s := encode(plain.Normal(40_000, 3))
	for _, array := range []string{NameEncodedExponent, NameGaps} {
		a := s.arrays()
		a[array] = io.NewSectionReader(failingReader{a[array], a[array].Size() - 1}, 0, a[array].Size())
		u, err := Open(a, nil)
		must(t, err)
		if warning, err := u.CheckUnread(); warning != nil || !errors.Is(err, errDisk) {
			t.Errorf("%s: %v, %v", array, warning, err)
		}
	}
}
