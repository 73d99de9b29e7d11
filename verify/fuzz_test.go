package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/alloc"
	"github.com/df11-convert/df11-convert/internal/testing/golden"
	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// FuzzHostile opens arbitrary arrays. If they open, checking them must end, every error must say
// that the file is wrong, and they must decode to what an independent decoder finds.
func FuzzHostile(f *testing.F) {
	// Small inputs, because large ones make the fuzzer slow.
	for _, s := range []*stored{
		encode(plain.Normal(101, 5)), encode(plain.Fibonacci(12, 4)),
		storedUnit(golden.Load(f, "elements_31").Unit), storedUnit(golden.Load(f, "end_on_byte").Unit),
	} {
		f.Add(s.luts, s.stream, s.sm, s.positions, s.gaps, s.split)
	}
	f.Fuzz(func(t *testing.T, luts, stream, sm, positions, gaps, split []byte) {
		s := &stored{luts: luts, stream: stream, sm: sm, positions: positions, gaps: gaps, split: split, source: make([]byte, 2*len(sm))}
		n := len(luts) + len(stream) + len(s.source) + len(positions) + len(gaps) + len(split)
		alloc.Within(t, 16<<20+100*int64(n), func() { mustEnd(t, s) })
	})
}

// FuzzSpoiled changes bytes of valid units, which gets further than arbitrary bytes do. Each edit
// is an array, an offset, and a change.
func FuzzSpoiled(f *testing.F) {
	units := []*stored{encode(plain.Normal(101, 5)), encode(plain.Fibonacci(13, 4)), encode(plain.Normal(30_000, 8))}
	f.Add(uint8(0), []byte{0, 3, 0, 255})
	f.Add(uint8(1), []byte{1, 3, 0, 255, 2, 9, 0, 1})
	f.Add(uint8(2), []byte{3, 4, 0, 1, 4, 77, 0, 16})
	f.Fuzz(func(t *testing.T, unit uint8, edits []byte) {
		s := units[int(unit)%len(units)].clone()
		for ; len(edits) >= 4; edits = edits[4:] {
			if b := *s.array(arrayNames[edits[0]%5]); len(b) > 0 {
				b[int(binary.LittleEndian.Uint16(edits[1:]))%len(b)] ^= edits[3]
			}
		}
		alloc.Within(t, 32<<20, func() { mustEnd(t, s) })
	})
}

// mustEnd checks any arrays. Checking them must end, every error must say that the file is wrong,
// and what decodes must be what an independent decoder finds.
func mustEnd(t *testing.T, s *stored) {
	t.Helper()
	u, err := s.open()
	if err != nil {
		mustBeOurs(t, err)
		return
	}
	ctx := context.Background()
	mustBeOurs(t, u.Compare(ctx, bytes.NewReader(s.source), CompareOptions{Strict: true}))
	out := make([]byte, len(s.source))
	if err := u.DecodeRange(ctx, 0, u.NElems(), out); err != nil {
		mustBeOurs(t, err)
		return
	}
	must(t, u.Compare(ctx, bytes.NewReader(out), CompareOptions{}))
	weights := oracle(s)
	if i := firstDifference(weights, out); i >= 0 || len(weights) != len(s.sm) {
		t.Fatalf("%d of %d weights, first difference at %d", len(weights), len(s.sm), i)
	}
}

func mustBeOurs(t *testing.T, err error) {
	t.Helper()
	if err != nil && !ours(err) {
		t.Fatal(err)
	}
}

// FuzzDecoders compares all decoders of chunks with the serial one, on arbitrary bits with the code
// of an arbitrary histogram. Byte i is the log2 of symbol i's count.
func FuzzDecoders(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, []byte{0xa5, 0xff, 0x00}, uint8(0))
	f.Add([]byte{0, 9, 9, 1, 30}, []byte{0}, uint8(31))
	f.Add([]byte{200, 1}, []byte{0xff}, uint8(3))
	f.Fuzz(func(t *testing.T, counts, stream []byte, start uint8) {
		var hist [256]int64
		for i, x := range counts {
			if i < jumpMin && x > 0 {
				hist[i] = 1 << (x % 31)
			}
		}
		if len(stream) == 0 || len(counts) == 0 {
			return
		}
		book := plain.Codes(&hist)
		if slices.ContainsFunc(book, func(c plain.Code) bool { return len(c.Bits) > maxCodeBits }) {
			return
		}
		tab, err := parseTables(plain.Tables(book))
		if err != nil {
			return // no unit has such a code
		}
		var chunks [maxLanes]chunkStream // each starts one byte later than the one before
		for c := range chunks {
			for i := 0; i < len(chunks[c]); i += len(stream) {
				copy(chunks[c][i:], stream[min(c, len(stream)-1):])
			}
		}
		for i := range variants {
			v := &variants[i]
			sameDecoded(t, v, tab, newMultiTable(tab), make([]codes, v.lanes), &chunks, int(start%32))
		}
	})
}

// sameDecoded decodes a chunk in every lane into got. m must be newMultiTable(tab).
func sameDecoded(t *testing.T, v *variant, tab *tables, m *multiTable, got []codes, chunks *[maxLanes]chunkStream, start int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(start), 1))
	lanes := make([]lane, v.lanes)
	for i := range lanes {
		for j := range got[i].starts { // a lane must not depend on earlier contents
			got[i].starts[j] = uint8(rng.Uint32())
		}
		lanes[i].begin(&got[i], &chunks[i], start)
	}
	v.decodeLanes(tab, m, lanes)
	for i := range lanes {
		var want codes
		ok := want.decodeMore(tab, &chunks[i], start, chunkBits, maxCodes)
		if lanes[i].finish(tab, m) != ok {
			t.Fatalf("%s, lane %d: all bits are codes: %v, lane finds the opposite", v.name, i, ok)
		}
		if ok {
			mustEqualCodes(t, &got[i], &want)
		}
	}
}

func mustEqualCodes(t *testing.T, got, want *codes) {
	t.Helper()
	if got.n != want.n || got.end != want.end || !bytes.Equal(got.exponents[:got.n], want.exponents[:want.n]) {
		t.Fatalf("%d codes to bit %d, want %d to %d", got.n, got.end, want.n, want.end)
	}
	for w := range chunkWindows {
		if got.window(w) != want.window(w) {
			t.Fatalf("window %d: starts %x, want %x", w, got.window(w), want.window(w))
		}
	}
}
