package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/golden"
	"github.com/df11-convert/df11-convert/internal/testing/plain"
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

// storedUnit is a unit as package plain has it.
func storedUnit(u plain.Unit) *stored {
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
			s := storedUnit(g.Unit)
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

func TestGoldenStreams(t *testing.T) {
	passed := 0
	for i, s := range append(golden.Streams(t), golden.FixedStreams(t)...) {
		if s.LUTs == nil {
			continue // the official encoder makes no tables, so there is nothing to decode
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) { mustPass(t, storedUnit(s.Unit)) })
		passed++
	}
	if want := 154 + len(golden.FixedStreams(t)); passed != want {
		t.Errorf("%d streams with tables, the sets have %d", passed, want)
	}
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
		codes := plain.CodesOf(h.Codes)
		end := codes[slices.IndexFunc(codes, func(c plain.Code) bool { return c.Symbol < 0 })]
		want, err := strconv.ParseUint((end.Bits + strings.Repeat("0", 32))[:32], 2, 32)
		must(t, err)
		if eof, err := tab.checkForm(); err != nil || uint64(eof) != want || !bytes.Equal(plain.Tables(codes), stored) {
			t.Errorf("histogram %d: end symbol %#x, want %#x; %v", i, eof, want, err)
		}
		n++
	}
	t.Logf("%d of %d tables", n, len(c.Items))
	if n < 200 {
		t.Errorf("only %d tables were usable", n)
	}
}

// must ends the test if err isn't nil.
var must = world.Must
