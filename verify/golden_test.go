package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/golden"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// stored is a unit in memory: the six arrays, its source, and its sizes.
type stored struct {
	luts, stream, sm, positions, gaps, split []byte

	source []byte
	sizes  []int64
}

func section(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}

func (s *stored) arrays() Arrays {
	return ArraysAt(func(name string) *io.SectionReader { return section(*s.array(name)) })
}

func (s *stored) open() (*Unit, error) { return Open(s.arrays(), s.sizes) }

// clone copies all arrays, so that a test may damage them.
func (s *stored) clone() *stored {
	c := *s
	for _, b := range []*[]byte{&c.luts, &c.stream, &c.sm, &c.positions, &c.gaps, &c.split, &c.source} {
		*b = bytes.Clone(*b)
	}
	return &c
}

func (s *stored) compare(opt CompareOptions) error {
	u, err := s.open()
	if err != nil {
		return err
	}
	return u.Compare(context.Background(), bytes.NewReader(s.source), opt)
}

// storedGolden is a golden unit.
func storedGolden(u golden.Unit) *stored {
	return &stored{
		luts: u.LUTs, stream: u.EncodedExponent, sm: u.SignMantissa, positions: u.OutputPositions, gaps: u.Gaps,
		split: u.SplitPositions, source: u.Input, sizes: u.Sizes,
	}
}

// mustPass checks that a unit is valid, strictly, and that every decoder returns its source.
func mustPass(t *testing.T, s *stored) {
	t.Helper()
	u, err := s.open()
	must(t, err)
	ctx := context.Background()
	for _, workers := range []int{1, 3} {
		err := u.Compare(ctx, bytes.NewReader(s.source), CompareOptions{Strict: true, Workers: workers})
		if err != nil {
			t.Errorf("compare with %d workers: %v", workers, err)
		}
	}
	rangesMustPass(t, u, s.source)
}

func rangesMustPass(t *testing.T, u *Unit, source []byte) {
	t.Helper()
	n := u.NElems()
	for _, r := range [][2]int64{{0, n}, {0, 1}, {n - 1, 1}, {n / 2, n - n/2}, {n / 3, n / 3}, {n, 0}} {
		got := make([]byte, 2*r[1])
		if err := u.DecodeRange(context.Background(), r[0], r[1], got); err != nil {
			t.Errorf("decode %d elements at %d: %v", r[1], r[0], err)
		} else if !bytes.Equal(got, source[2*r[0]:2*(r[0]+r[1])]) {
			t.Errorf("decoding %d elements at %d gives other weights", r[1], r[0])
		}
	}
}

func TestGoldenUnits(t *testing.T) {
	for _, g := range golden.Units(t) {
		t.Run(g.Name, func(t *testing.T) {
			s := storedGolden(g)
			if g.Sound() {
				mustPass(t, s)
				return
			}
			_, err := s.open()
			var bad *StructureError
			if !errors.As(err, &bad) {
				t.Fatalf("a unit that DF11 cannot hold (%v) opens with %v", g.Problems, err)
			}
		})
	}
}

// streamCase is one unit of the compact sets, which leave out the sign_mantissa bytes.
type streamCase struct {
	N             int
	LUTsError     string `json:"luts_error"`
	LUTsOffset    int    `json:"luts_offset"`
	LUTsRows      int    `json:"luts_rows"`
	Codec         int
	SymbolsOffset int      `json:"symbols_offset"`
	Runs          [][2]int // count, symbol
	EncodedSHA256 string   `json:"encoded_sha256"`
	EncodedOffset int      `json:"encoded_offset"`
	EncodedBytes  int      `json:"encoded_bytes"`
	Positions     []uint32 `json:"output_positions"`
	GapsBytes     int      `json:"gaps_bytes"`
	GapsPrefixHex string   `json:"gaps_prefix_hex"`
}

// stored makes the case's unit with these tables and weights.
func (x streamCase) stored(t *testing.T, luts, encoded, source []byte) *stored {
	t.Helper()
	return &stored{
		luts: luts, stream: encoded[x.EncodedOffset : x.EncodedOffset+x.EncodedBytes], positions: uint32Bytes(x.Positions),
		gaps: padHex(t, x.GapsPrefixHex, x.GapsBytes), sm: signMantissa(source), source: source, sizes: []int64{int64(x.N)},
	}
}

func TestGoldenStreams(t *testing.T) {
	var c struct{ Streams []streamCase }
	golden.Case(t, "streams", &c)
	input, encoded, luts := golden.Read(t, "streams", "input.bf16"), golden.Read(t, "streams", "encoded.u8"), golden.Read(t, "streams", "luts.u8")
	passed := 0
	for _, x := range c.Streams {
		if x.LUTsError != "" {
			continue // the official encoder makes no tables, so there is nothing to decode
		}
		s := x.stored(t, luts[x.LUTsOffset:x.LUTsOffset+x.LUTsRows*rowBytes], encoded, input[:2*x.N])
		t.Run(fmt.Sprint(x.N), func(t *testing.T) { mustPass(t, s) })
		passed++
	}
	if passed != 154 {
		t.Errorf("%d streams with tables, the set has 154", passed)
	}
}

func TestGoldenStreamsFixedCodec(t *testing.T) {
	var c struct {
		Codecs []struct {
			Codes [][3]int64 // symbol, bits, value
		}
		Streams []streamCase
	}
	golden.Case(t, "streams_fixed_codec", &c)
	symbols, encoded := golden.Read(t, "streams_fixed_codec", "symbols.u8"), golden.Read(t, "streams_fixed_codec", "encoded.u8")
	for i, x := range c.Streams {
		book := bookOf(c.Codecs[x.Codec].Codes)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if x.Runs != nil {
				mustPassRuns(t, book, x.Runs, x.EncodedSHA256)
				return
			}
			source := make([]byte, 2*x.N)
			fastest().join(source, symbols[x.SymbolsOffset:x.SymbolsOffset+x.N], make([]byte, x.N))
			mustPass(t, x.stored(t, book.luts(), encoded, source))
		})
	}
}

// mustPassRuns encodes a stream that the set stores as runs, compares it with the recorded hash,
// and decodes it.
func mustPassRuns(t *testing.T, book *codebook, runs [][2]int, sha string) {
	t.Helper()
	var symbols []uint8
	for _, run := range runs {
		symbols = append(symbols, slices.Repeat([]uint8{uint8(run[1])}, run[0])...)
	}
	s := encodeWith(book, fromSymbols(symbols, rand.New(rand.NewPCG(1, 2))))
	if got := sha256.Sum256(s.stream); hex.EncodeToString(got[:]) != sha {
		t.Fatalf("test encoder: stream has sha256 %x, want %s", got, sha)
	}
	mustPass(t, s)
}

// bookOf makes a codebook of case.json's codes, where symbol -1 is the end symbol.
func bookOf(codes [][3]int64) *codebook {
	var b codebook
	for _, x := range codes {
		c := code{symbol: uint8(x[0]), nBits: int(x[1]), value: uint32(x[2] << (32 - x[1]))}
		if x[0] < 0 {
			b.eof = c
			continue
		}
		b.codes = append(b.codes, c)
	}
	return &b
}

// TestGoldenHistograms finds the end symbol in 282 official tables, and the plain encoder builds
// the same tables.
func TestGoldenHistograms(t *testing.T) {
	var c struct {
		Items []struct {
			Codes      [][3]int64
			LutsOffset *int `json:"luts_offset"`
			LutsRows   int  `json:"luts_rows"`
		}
	}
	golden.Case(t, "histograms", &c)
	luts := golden.Read(t, "histograms", "luts.u8")
	n := 0
	for i, h := range c.Items {
		if h.LutsOffset == nil || h.LutsRows > maxTables+1 {
			continue
		}
		stored := luts[*h.LutsOffset : *h.LutsOffset+h.LutsRows*rowBytes]
		tab, err := parseTables(stored)
		if err != nil {
			if slices.ContainsFunc(h.Codes, func(c [3]int64) bool { return c[0] >= jumpMin }) {
				continue
			}
			t.Errorf("histogram %d: %v", i, err)
			continue
		}
		want := bookOf(h.Codes)
		if eof, err := tab.checkForm(); err != nil || eof != want.eof.value || !bytes.Equal(want.luts(), stored) {
			t.Errorf("histogram %d: end symbol %#x, want %#x; %v", i, eof, want.eof.value, err)
		}
		n++
	}
	t.Logf("%d of %d tables", n, len(c.Items))
	if n < 200 {
		t.Errorf("only %d tables were usable", n)
	}
}

func uint32Bytes(v []uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func padHex(t testing.TB, s string, n int) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil || len(b) > n {
		t.Fatalf("%d bytes of hex for %d: %v", len(b), n, err)
	}
	return append(b, make([]byte, n-len(b))...)
}

// signMantissa splits BF16 weights (docs/format.md §2).
func signMantissa(bf16 []byte) []byte {
	sm := make([]byte, len(bf16)/2)
	for i := range sm {
		w := binary.LittleEndian.Uint16(bf16[2*i:])
		sm[i] = uint8(w>>8&0x80) | uint8(w&0x7f)
	}
	return sm
}

// must ends the test if err isn't nil.
var must = world.Must
