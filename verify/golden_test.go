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
	"strconv"
	"strings"
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

// storedUnit is a unit as package golden has it.
func storedUnit(u golden.Unit) *stored {
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
			s := storedUnit(g)
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
		gaps: padHex(t, x.GapsPrefixHex, x.GapsBytes), sm: golden.SignMantissa(source), source: source, sizes: []int64{int64(x.N)},
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
		codes := golden.CodesOf(c.Codecs[x.Codec].Codes)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if x.Runs != nil {
				mustPassRuns(t, codes, x.Runs, x.EncodedSHA256)
				return
			}
			source := make([]byte, 2*x.N)
			fastest().join(source, symbols[x.SymbolsOffset:x.SymbolsOffset+x.N], make([]byte, x.N))
			mustPass(t, x.stored(t, golden.Tables(codes), encoded, source))
		})
	}
}

// mustPassRuns encodes a stream that the set stores as runs, compares it with the recorded hash,
// and decodes it.
func mustPassRuns(t *testing.T, codes []golden.Code, runs [][2]int, sha string) {
	t.Helper()
	var symbols []uint8
	for _, run := range runs {
		symbols = append(symbols, slices.Repeat([]uint8{uint8(run[1])}, run[0])...)
	}
	weights := fromSymbols(symbols, rand.New(rand.NewPCG(1, 2)))
	s := storedUnit(golden.Encode(codes, []int64{int64(len(symbols))}, weights))
	if got := sha256.Sum256(s.stream); hex.EncodeToString(got[:]) != sha {
		t.Fatalf("test encoder: stream has sha256 %x, want %s", got, sha)
	}
	mustPass(t, s)
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
		codes := golden.CodesOf(h.Codes)
		end := codes[slices.IndexFunc(codes, func(c golden.Code) bool { return c.Symbol < 0 })]
		want, err := strconv.ParseUint((end.Bits + strings.Repeat("0", 32))[:32], 2, 32)
		must(t, err)
		if eof, err := tab.checkForm(); err != nil || uint64(eof) != want || !bytes.Equal(golden.Tables(codes), stored) {
			t.Errorf("histogram %d: end symbol %#x, want %#x; %v", i, eof, want, err)
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

// must ends the test if err isn't nil.
var must = world.Must
