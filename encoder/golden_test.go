package encoder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/alloc"
	"github.com/df11-convert/df11-convert/internal/testing/golden"
	"github.com/df11-convert/df11-convert/internal/testing/plain"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// codebookCase is the part of a case that is about one histogram.
type codebookCase struct {
	ID         int         `json:"id"`
	Histogram  [][2]uint64 `json:"histogram"`
	Codes      [][3]int64  `json:"codes"`
	LUTsOffset *int        `json:"luts_offset"`
	LUTsRows   int         `json:"luts_rows"`
	Limiter    struct {
		Tie bool `json:"tie_at_boundary"`
	} // docs/format.md §5
}

func (c codebookCase) histogram() *histogram {
	var h histogram
	for _, e := range c.Histogram {
		h[e[0]] = e[1]
	}
	return &h
}

func codebookOf(codes []plain.Code) *codebook {
	var list []code
	for _, c := range codes {
		bits, _ := strconv.ParseUint(c.Bits, 2, 64)
		list = append(list, code{symbol: c.Symbol, n: len(c.Bits), bits: bits})
	}
	return newCodebook(list)
}

// unitCase is one directory of the vectors.
type unitCase struct {
	codebookCase
	Tensors []struct{ Numel int64 }
	Luts    []int `json:"luts_shape"`
	Kernel  struct{ Problems []string }
	Files   map[string]struct {
		Bytes  int
		SHA256 string
	}
	Recipe struct {
		N, Stride int
	} `json:"input_recipe"`
}

func (c unitCase) sizes() []int64 {
	var sizes []int64
	for _, t := range c.Tensors {
		sizes = append(sizes, t.Numel)
	}
	return sizes
}

// reason is the limit that keeps the unit out of DF11, or "".
func (c unitCase) reason() Reason {
	if c.Luts == nil {
		return ReasonOfficialCrash
	}
	for _, p := range c.Kernel.Problems {
		return map[string]Reason{
			"shared_memory_over_48KiB":   ReasonSharedMemory,
			"exponent_240_or_more":       ReasonExponentRange,
			"more_than_17_prefix_tables": ReasonTooManyLUTs,
		}[p]
	}
	return ""
}

// forVariants runs f for every variant of this machine. If DF11_TEST_VARIANT names a variant, it
// runs only that one and fails if the machine lacks it.
func forVariants(t *testing.T, f func(t *testing.T, o options)) {
	t.Helper()
	// thousands of small units, each with tables of its own
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	only, ran := os.Getenv("DF11_TEST_VARIANT"), false
	for _, l := range variants() {
		if only == "" || only == l.name {
			ran = true
			t.Run(l.name, func(t *testing.T) { f(t, options{loops: &l}) })
		}
	}
	if !ran {
		t.Fatalf("this machine lacks variant %s", only)
	}
}

// encodeWith encodes with any code, whether or not it was made from the data. No limit applies.
func encodeWith(t testing.TB, o options, book *codebook, sizes []int64, bf16 []byte, workers int) plain.Unit {
	t.Helper()
	c, total := o.counted(t, sizes, bf16, workers)
	rows, _ := book.luts()
	u := c.unit(book, total, rows)
	e, dst := u.newEncoded()
	err := u.Encode(t.Context(), alloc.Memory(bf16), dst, workers)
	if unsupported := new(UnsupportedError); err != nil && !errors.As(err, &unsupported) {
		t.Fatal(err)
	}
	return e
}

// diff names the first tensor that differs, or returns "".
func diff(got, want plain.Unit) string {
	for _, p := range []struct {
		name      string
		got, want []byte
	}{
		{NameLUTs, got.LUTs, want.LUTs},
		{NameEncodedExponent, got.EncodedExponent, want.EncodedExponent},
		{NameSignMantissa, got.SignMantissa, want.SignMantissa},
		{NameOutputPositions, got.OutputPositions, want.OutputPositions},
		{NameGaps, got.Gaps, want.Gaps},
		{NameSplitPositions, got.SplitPositions, want.SplitPositions},
	} {
		if d := diffBytes(p.got, p.want); d != "" {
			return p.name + ": " + d
		}
	}
	return ""
}

// mustEncode encodes weights with any code and compares the result with that of the plain encoder.
func mustEncode(t testing.TB, o options, book *codebook, bf16 []byte, what string) {
	t.Helper()
	n := int64(len(bf16) / 2)
	sizes := []int64{n / 3, n - n/3}
	var codes []plain.Code
	for _, c := range book.order {
		codes = append(codes, plain.NewCode(c.symbol, c.n, c.bits))
	}
	if d := diff(encodeWith(t, o, book, sizes, bf16, 2), plain.Encode(codes, sizes, bf16)); d != "" {
		t.Fatalf("%s, block %d: %s", what, o.block, d)
	}
}

func diffBytes(got, want []byte) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("byte %d of %d is %#x, want %#x", i, len(want), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d bytes, want %d", len(got), len(want))
	}
	return ""
}

func TestGoldenUnits(t *testing.T) {
	for _, u := range golden.Units(t) {
		t.Run(u.Name, func(t *testing.T) {
			var c unitCase
			golden.Case(t, u.Name, &c)
			forVariants(t, func(t *testing.T, o options) { testGoldenUnit(t, o, u, c) })
		})
	}
}

func testGoldenUnit(t *testing.T, o options, u golden.Unit, c unitCase) {
	e := encodeWith(t, o, buildCodebook(c.histogram()), u.Sizes, u.Input, 2)
	if d := diff(e, u.Unit); d != "" {
		t.Error(d)
	}
	_, err := o.encode(u.Sizes, u.Input, 1)
	if got := reasonOf(err); got != c.reason() {
		t.Errorf("encode: %v, want reason %q", err, c.reason())
	}
}

func reasonOf(err error) Reason {
	var unsupported *UnsupportedError
	if errors.As(err, &unsupported) {
		return unsupported.Reason
	}
	return ""
}

func TestGoldenStreams(t *testing.T) {
	for _, list := range [][]golden.Stream{golden.Streams(t), golden.FixedStreams(t)} {
		forVariants(t, func(t *testing.T, o options) {
			for i, s := range list {
				var h histogram
				h.add(s.Input)
				book := buildCodebook(&h)
				if s.Codes != nil {
					book = codebookOf(s.Codes)
				}
				if d := diff(encodeWith(t, o, book, s.Sizes, s.Input, 2), s.Unit); d != "" {
					t.Errorf("stream %d, n = %d: %s", i, s.Sizes[0], d)
				}
			}
		})
	}
}

// TestGoldenHistograms checks codes, the limiter, and tables for histograms that are too large to
// store as weights.
func TestGoldenHistograms(t *testing.T) {
	var set struct{ Items []codebookCase }
	golden.Case(t, "histograms", &set)
	luts := golden.Read(t, "histograms", "luts.u8")
	for _, c := range set.Items {
		t.Run(fmt.Sprint(c.ID), func(t *testing.T) { testGoldenHistogram(t, c, luts) })
	}
}

func testGoldenHistogram(t *testing.T, c codebookCase, luts []byte) {
	got, want := buildCodebook(c.histogram()), codebookOf(plain.CodesOf(c.Codes))
	if !slices.Equal(got.order, want.order) {
		t.Errorf("codes: got %v, want %v", got.order, want.order)
	}
	if got.tied != c.Limiter.Tie {
		t.Errorf("tied: got %v", got.tied)
	}
	rows, ok := got.luts()
	if ok != (c.LUTsOffset != nil) {
		t.Fatalf("luts: got ok = %v", ok)
	}
	if !ok {
		return
	}
	if d := diffBytes(rows, luts[*c.LUTsOffset:][:c.LUTsRows*lutSlots]); d != "" {
		t.Error("luts:", d)
	}
}

// TestGoldenLimiter builds the one unit in which the limiter acts from its recipe and compares
// hashes.
func TestGoldenLimiter(t *testing.T) {
	var c unitCase
	golden.Case(t, "limiter_recipe", &c)
	n := c.Recipe.N
	symbols := make([]byte, n)
	at := 0
	for _, e := range c.Histogram {
		for range e[1] {
			symbols[at] = byte(e[0])
			at = (at + c.Recipe.Stride) % n
		}
	}
	input := plain.Weights(symbols)
	if hexSum(input) != c.Files["input.bf16"].SHA256 {
		t.Fatal("the weights don't match the recipe")
	}
	forVariants(t, func(t *testing.T, o options) {
		e, err := o.encode(c.sizes(), input, 2)
		must(t, err)
		for name, p := range map[string][]byte{
			"luts.u8": e.LUTs, "encoded_exponent.u8": e.EncodedExponent, "sign_mantissa.u8": e.SignMantissa,
			"output_positions.u32": e.OutputPositions, "gaps.u8": e.Gaps,
		} {
			if hexSum(p) != c.Files[name].SHA256 {
				t.Errorf("%s: sha256 differs", name)
			}
		}
	})
}

func hexSum(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// must ends the test if err isn't nil.
var must = world.Must
