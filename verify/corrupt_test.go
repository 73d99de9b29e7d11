package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// array returns one of the stored arrays by its name.
func (s *stored) array(name string) *[]byte {
	return map[string]*[]byte{
		arrayLUTs: &s.luts, arrayEncodedExponent: &s.stream, arraySignMantissa: &s.sm,
		arrayOutputPositions: &s.positions, arrayGaps: &s.gaps, arraySplitPositions: &s.split,
	}[name]
}

var arrayNames = []string{arrayLUTs, arrayEncodedExponent, arraySignMantissa, arrayOutputPositions, arrayGaps, arraySplitPositions}

// testUnits are small units of different kinds: several chunks, long codes, one chunk.
func testUnits() map[string]*stored {
	units := map[string]*stored{
		"normal": encode(normalWeights(40_000, 3)),
		"long":   encode(fibWeights(20, 4)),
		"short":  encode(normalWeights(101, 5)),
	}
	units["normal"].splitAt(1000, 1000, 30_000)
	return units
}

// TestEveryByteCounts changes single bytes of the arrays. Strictly compared, none may go unnoticed.
func TestEveryByteCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, s := range testUnits() {
		mustPass(t, s)
		for _, array := range arrayNames {
			t.Run(name+"/"+array, func(t *testing.T) {
				n := len(*s.array(array))
				for i := range n {
					if inside := i >= 20 && i < n-20; inside && n*len(s.sm) > 1<<18 && rng.IntN(n) > 100 {
						continue // in large units, only some
					}
					c := s.clone()
					(*c.array(array))[i] ^= 1 << rng.IntN(8)
					if err := c.compare(CompareOptions{Strict: true}); !ours(err) {
						t.Errorf("byte %d of %d changed: %v", i, n, err)
					}
				}
			})
		}
	}
}

// ours says that an error blames the file.
func ours(err error) bool {
	var s *StructureError
	var m *MismatchError
	return errors.As(err, &s) || errors.As(err, &m)
}

// oracle decodes as the kernel does, written apart from the package's decoders. It stops before the
// first window that would hang, and at a chunk that decodes to another number of weights than stored.
func oracle(s *stored) (weights []uint16) {
	padded := append(bytes.Clone(s.stream), make([]byte, 2*chunkBytes)...)
	rows := len(s.luts)/256 - 1
	code := func(bit int) (symbol, nBits int) {
		v := 0
		for level, row := 0, 0; level < 4; level++ {
			at := bit + 8*level
			v = int(s.luts[256*row+int(padded[at/8]<<(at%8)|uint8(uint16(padded[at/8+1])>>(8-at%8)))])
			if v < 240 {
				return v, int(s.luts[256*rows+v])
			}
			if row = 256 - v; row >= rows {
				return 0, 0
			}
		}
		return 0, 0
	}
	gap := func(w int) (g int) {
		for bit := 5 * w; bit < 5*w+5; bit++ {
			g = g<<1 | int(s.gaps[bit/8]>>(7-bit%8)&1)
		}
		return g
	}
	n := len(s.source) / 2
	for chunk := 0; len(weights) < n; chunk++ {
		end := n
		if len(s.positions) > 4*chunk+4 {
			end = int(binary.LittleEndian.Uint32(s.positions[4*chunk+4:]))
		}
		for w := 512 * chunk; w < 512*(chunk+1); w++ {
			for bit := 64*w + gap(w); bit < 64*(w+1); {
				symbol, nBits := code(bit)
				if nBits < 1 || nBits > 32 {
					return weights
				}
				if len(weights) < end {
					sm := s.sm[len(weights)]
					weights = append(weights, uint16(sm>>7)<<15|uint16(symbol)<<7|uint16(sm&0x7f))
				} else if end < n {
					return weights
				}
				bit += nBits
			}
		}
		if len(weights) < end {
			return weights
		}
	}
	return weights
}

// firstDifference is the first element that differs from the source, or -1.
func firstDifference(weights []uint16, source []byte) int {
	for i, w := range weights {
		if w != binary.LittleEndian.Uint16(source[2*i:]) {
			return i
		}
	}
	return -1
}

// TestMismatchIsFirst spoils arrays and demands that a MismatchError names what an independent
// decoder finds first, and that workers make no difference.
func TestMismatchIsFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, s := range testUnits() {
		for _, array := range []string{arrayEncodedExponent, arraySignMantissa, arrayGaps} {
			t.Run(name+"/"+array, func(t *testing.T) {
				for range 60 {
					c := s.clone()
					for range 1 + rng.IntN(3) {
						b := *c.array(array)
						b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
					}
					mustNameFirst(t, c)
				}
			})
		}
	}
}

func mustNameFirst(t *testing.T, c *stored) {
	t.Helper()
	want := firstDifference(oracle(c), c.source)
	first := c.compare(CompareOptions{Unit: "u", Workers: 1})
	if again := c.compare(CompareOptions{Unit: "u", Workers: 4}); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("1 worker: %v; 4 workers: %v", first, again)
	}
	var m *MismatchError
	switch {
	case !errors.As(first, &m):
		if want >= 0 || first != nil && !ours(first) {
			t.Errorf("element %d differs: %v", want, first)
		}
	case elemInUnit(c, m) != want:
		t.Errorf("first difference at element %d, named %d: %v", want, elemInUnit(c, m), m)
	case m.Want != binary.LittleEndian.Uint16(c.source[2*want:]) || m.Got == m.Want:
		t.Errorf("element %d: got %#x, want %#x", want, m.Got, m.Want)
	}
}

// elemInUnit undoes the naming of a tensor "#i" and its element.
func elemInUnit(c *stored, m *MismatchError) int {
	var i int
	if _, err := fmt.Sscanf(m.Tensor, "#%d", &i); err != nil {
		return -2
	}
	at := m.Elem
	for _, n := range c.sizes[:i] {
		at += n
	}
	if m.Elem >= c.sizes[i] {
		return -3
	}
	return int(at)
}

func TestMismatchNames(t *testing.T) {
	s := encode(normalWeights(900_000, 6)) // several blocks
	s.splitAt(10, 10, 500_000)
	opt := CompareOptions{Unit: "model.layers.0", Names: []string{"q", "empty", "k", "v"}}
	for _, x := range []struct {
		spoil  []int
		tensor string
		elem   int64
	}{
		{[]int{9}, "q", 9},
		{[]int{10, 899_999}, "k", 0},
		{[]int{499_999, 500_000}, "k", 499_989},
		{[]int{700_000, 500_000, 800_000}, "v", 0},
		{[]int{899_999}, "v", 399_999},
	} {
		c := s.clone()
		for _, i := range x.spoil {
			c.source[2*i+1] ^= 0x80
		}
		for opt.Workers = range 4 {
			var m *MismatchError
			if err := c.compare(opt); !errors.As(err, &m) {
				t.Fatalf("element %v spoiled: %v", x.spoil, err)
			}
			if m.Unit != opt.Unit || m.Tensor != x.tensor || m.Elem != x.elem || m.Got^m.Want != 0x8000 || m.Cause != nil {
				t.Errorf("element %v spoiled: %v", x.spoil, m)
			}
		}
	}
}

// TestBorderGap spoils the first gap of chunks, which the chunk before notices.
func TestBorderGap(t *testing.T) {
	s := encode(normalWeights(900_000, 6))
	u, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	for _, chunk := range []int{0, 1, 2, blockChunks - 1, blockChunks, u.nChunks - 1} {
		c := s.clone()
		c.gaps[chunk*gapBytes] ^= 0x80 // moves the first gap by 16 bits
		var m *MismatchError
		if err := c.compare(CompareOptions{}); !errors.As(err, &m) || m.Cause == nil || m.Cause.Array != arrayGaps {
			t.Errorf("chunk %d: %v", chunk, err)
		}
		mustNameFirst(t, c)
	}
}

func TestMismatchText(t *testing.T) {
	m := &MismatchError{Unit: "lm_head", Tensor: "weight", Elem: 7, Got: 0x3f80, Want: 0x80}
	want := "unit lm_head, tensor weight, element 7: decoded 0x3f80, source has 0x0080"
	if got := m.Error(); got != want {
		t.Errorf("%s", got)
	}
	m.Cause = badAt(arrayGaps, 3, "broken")
	if got := m.Error(); got != want+" (gaps, window 3: broken)" {
		t.Errorf("%s", got)
	}
}

// TestStructure breaks what Open judges.
func TestStructure(t *testing.T) {
	good := encode(normalWeights(40_000, 3))
	good.splitAt(1000)
	zeros := make([]byte, 1<<16)
	for name, x := range map[string]struct {
		array string
		spoil func(s *stored)
	}{
		"no lut rows":             {arrayLUTs, func(s *stored) { s.luts = nil }},
		"one lut row":             {arrayLUTs, func(s *stored) { s.luts = s.luts[:256] }},
		"19 lut rows":             {arrayLUTs, func(s *stored) { s.luts = zeros[:19*256] }},
		"half a lut row":          {arrayLUTs, func(s *stored) { s.luts = s.luts[:len(s.luts)-1] }},
		"luts of zeros":           {arrayLUTs, func(s *stored) { s.luts = zeros[:512] }},
		"huge luts":               {arrayLUTs, func(s *stored) { s.luts = zeros }},
		"no stream":               {arrayEncodedExponent, func(s *stored) { s.stream = nil }},
		"longer stream":           {arrayEncodedExponent, func(s *stored) { s.stream = append(s.stream, 0) }},
		"shorter stream":          {arrayEncodedExponent, func(s *stored) { s.stream = s.stream[:len(s.stream)-1] }},
		"short sign_mantissa":     {arraySignMantissa, func(s *stored) { s.sm = s.sm[1:] }},
		"long sign_mantissa":      {arraySignMantissa, func(s *stored) { s.sm = append(s.sm, 0) }},
		"no weights":              {arraySignMantissa, func(s *stored) { s.source, s.sm = nil, nil }},
		"short gaps":              {arrayGaps, func(s *stored) { s.gaps = s.gaps[1:] }},
		"gaps of one chunk more":  {arrayGaps, func(s *stored) { s.gaps = append(s.gaps, zeros[:320]...) }},
		"odd positions":           {arrayOutputPositions, func(s *stored) { s.positions = s.positions[1:] }},
		"positions for one less":  {arrayOutputPositions, func(s *stored) { s.positions = s.positions[8:] }},
		"positions, last missing": {arrayOutputPositions, func(s *stored) { s.positions = s.positions[:len(s.positions)-4] }},
		"positions start late":    {arrayOutputPositions, func(s *stored) { s.positions[0] = 1 }},
		"positions fall":          {arrayOutputPositions, func(s *stored) { copy(s.positions[8:], s.positions[4:8]) }},
		"positions end early":     {arrayOutputPositions, func(s *stored) { s.positions[len(s.positions)-4]-- }},
		"positions off by one":    {arrayOutputPositions, func(s *stored) { s.positions[4]++ }},
		"chunk too large":         {arrayOutputPositions, func(s *stored) { copy(s.positions[4:], []byte{0xff, 0x5b, 0, 0}) }},
		"odd split":               {arraySplitPositions, func(s *stored) { s.split = s.split[1:] }},
		"split missing":           {arraySplitPositions, func(s *stored) { s.split = nil }},
		"split elsewhere":         {arraySplitPositions, func(s *stored) { s.split[0]++ }},
		"split behind the end":    {arraySplitPositions, func(s *stored) { s.split[3] = 1 }},
		"split negative":          {arraySplitPositions, func(s *stored) { s.split[7] = 0x80 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := good.clone()
			x.spoil(s)
			err := s.compare(CompareOptions{})
			var bad *StructureError
			if !errors.As(err, &bad) || bad.Array != x.array {
				t.Errorf("want a StructureError of %s, got %v", x.array, err)
			}
		})
	}
}

// lutsOf makes tables from rows that give values to ranges of slots, and code lengths.
func lutsOf(lengths map[uint8]uint8, rows ...map[int]uint8) []byte {
	var luts []byte
	for _, row := range rows {
		v := uint8(0)
		for s := range rowBytes {
			if x, ok := row[s]; ok {
				v = x
			}
			luts = append(luts, v)
		}
	}
	last := make([]byte, rowBytes)
	for s, l := range lengths {
		last[s] = l
	}
	return append(luts, last...)
}

func TestHostileTables(t *testing.T) {
	jump := func(table int) uint8 { return uint8(256 - table) }
	for name, x := range map[string]struct {
		luts []byte
		good bool
	}{
		"plain":             {lutsOf(map[uint8]uint8{7: 1, 8: 1}, map[int]uint8{0: 7, 128: 8}), true},
		"length 0":          {lutsOf(map[uint8]uint8{7: 1}, map[int]uint8{0: 7, 128: 8}), false},
		"length 33":         {lutsOf(map[uint8]uint8{7: 1, 8: 33}, map[int]uint8{0: 7, 128: 8}), false},
		"length below":      {lutsOf(map[uint8]uint8{7: 1, 8: 9}, map[int]uint8{0: 7, 128: 8}), false},
		"length above":      {lutsOf(map[uint8]uint8{7: 1, 8: 2, 9: 8}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 128: 9}), false},
		"two levels":        {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 9}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 128: 9}), true},
		"jump to no table":  {lutsOf(map[uint8]uint8{7: 1}, map[int]uint8{0: 7, 255: jump(1)}), false},
		"jump far":          {lutsOf(map[uint8]uint8{7: 1}, map[int]uint8{0: 7, 255: jump(16)}), false},
		"jump to itself":    {lutsOf(map[uint8]uint8{7: 1, 8: 9}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 128: jump(1)}), false},
		"jump back":         {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 17}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 255: jump(2)}, map[int]uint8{0: 9, 255: jump(1)}), false},
		"five levels":       {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 17, 10: 25, 11: 32}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 255: jump(2)}, map[int]uint8{0: 9, 255: jump(3)}, map[int]uint8{0: 10, 255: jump(4)}, map[int]uint8{0: 11}), false},
		"four levels":       {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 17, 10: 25}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 255: jump(2)}, map[int]uint8{0: 9, 255: jump(3)}, map[int]uint8{0: 10}), true},
		"leaked jump":       {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 17}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: jump(1), 128: 8}), true},
		"zero bits hang":    {lutsOf(map[uint8]uint8{7: 1, 8: 9}, map[int]uint8{0: jump(1), 1: 7, 255: jump(1)}, map[int]uint8{0: jump(1), 128: 8}), false},
		"no length, leaked": {lutsOf(map[uint8]uint8{7: 1, 8: 9}, map[int]uint8{0: 7, 254: jump(1), 255: 5}, map[int]uint8{0: 5, 128: 8}), false},
	} {
		_, err := parseTables(x.luts)
		var bad *StructureError
		if x.good != (err == nil) || err != nil && !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnread changes what no decoder reads: Compare passes, CheckUnread warns.
func TestUnread(t *testing.T) {
	s := encode(normalWeights(101, 5))
	for name, x := range map[string]struct {
		array string
		spoil func(s *stored)
	}{
		"gap behind the end": {arrayGaps, func(s *stored) { s.gaps[300] = 1 }},
		"last gap":           {arrayGaps, func(s *stored) { s.gaps[319] = 1 }},
		"length of nothing":  {arrayLUTs, func(s *stored) { s.luts[len(s.luts)-1] = 7 }},
		"tail bit":           {arrayEncodedExponent, func(s *stored) { s.stream[len(s.stream)-1] ^= 1 }},
	} {
		c := s.clone()
		x.spoil(c)
		if err := c.compare(CompareOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		u, err := c.open()
		if err != nil {
			t.Fatal(err)
		}
		warnings, err := u.CheckUnread(context.Background())
		if err != nil || len(warnings) != 1 || warnings[0].Array != x.array {
			t.Errorf("%s: %v, %v", name, warnings, err)
		}
	}
}

// failingReader fails in one byte.
type failingReader struct {
	io.ReaderAt
	at int64
}

var errDisk = errors.New("disk on fire")

func (f failingReader) ReadAt(p []byte, off int64) (int, error) {
	if off <= f.at && f.at < off+int64(len(p)) {
		return 0, errDisk
	}
	return f.ReaderAt.ReadAt(p, off)
}

func TestReadErrors(t *testing.T) {
	s := encode(normalWeights(900_000, 6))
	for _, array := range arrayNames[1:5] {
		a := s.arrays()
		r := map[string]**io.SectionReader{
			arrayEncodedExponent: &a.EncodedExponent, arraySignMantissa: &a.SignMantissa,
			arrayOutputPositions: &a.OutputPositions, arrayGaps: &a.Gaps,
		}[array]
		*r = io.NewSectionReader(failingReader{*r, (*r).Size() - 1}, 0, (*r).Size())
		u, err := Open(a, 900_000, nil)
		if err == nil {
			err = u.Compare(context.Background(), bytes.NewReader(s.source), CompareOptions{})
		}
		if !errors.Is(err, errDisk) || ours(err) {
			t.Errorf("%s: %v", array, err)
		}
	}
	u, _ := s.open()
	err := u.Compare(context.Background(), bytes.NewReader(s.source[:len(s.source)-1]), CompareOptions{})
	if !errors.Is(err, io.ErrUnexpectedEOF) || ours(err) {
		t.Errorf("short source: %v", err)
	}
}

func TestCancel(t *testing.T) {
	s := encode(normalWeights(900_000, 6))
	u, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(context.Background())
	src := cancelingReader{bytes.NewReader(s.source), func() { cancel(cause) }}
	if err := u.Compare(ctx, src, CompareOptions{Workers: 1}); !errors.Is(err, cause) {
		t.Errorf("compare: %v", err)
	}
	if err := u.Decode(ctx, make(writerAt, len(s.source)), 2); !errors.Is(err, cause) {
		t.Errorf("decode: %v", err)
	}
	if err := u.DecodeRange(ctx, 0, 1, make([]byte, 2)); !errors.Is(err, cause) {
		t.Errorf("decode a range: %v", err)
	}
	if _, err := u.CheckUnread(ctx); !errors.Is(err, cause) {
		t.Errorf("check unread: %v", err)
	}
}

// cancelingReader calls cancel with its first read.
type cancelingReader struct {
	io.ReaderAt
	cancel func()
}

func (c cancelingReader) ReadAt(p []byte, off int64) (int, error) {
	c.cancel()
	return c.ReaderAt.ReadAt(p, off)
}

func TestSample(t *testing.T) {
	s := encode(normalWeights(400_000, 6))
	u, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	for n := range u.nChunks + 2 {
		a, b := u.sample(n, 1).singles, u.sample(n, 1).singles
		if len(a) != min(max(n, 1), u.nChunks) || !slices.Equal(a, b) || !slices.IsSorted(a) {
			t.Errorf("sample of %d of %d chunks: %v, %v", n, u.nChunks, a, b)
		}
		if n >= 2 && (a[0] != 0 || a[len(a)-1] != u.nChunks-1) {
			t.Errorf("sample of %d leaves out an end: %v", n, a)
		}
	}
	if slices.Equal(u.sample(9, 1).singles, u.sample(9, 2).singles) {
		t.Error("the seed makes no difference")
	}
	bad := bytes.Clone(s.source)
	bad[len(bad)-1] ^= 1
	var m *MismatchError
	if err := u.CompareSample(context.Background(), bytes.NewReader(bad), CompareOptions{}, 2, 5); !errors.As(err, &m) {
		t.Errorf("last weight spoiled: %v", err)
	}
}

// zeros is a reader of any size.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

// TestHugeClaims opens arrays of absurd sizes; the test would run out of memory if Open believed them.
func TestHugeClaims(t *testing.T) {
	const huge = 1 << 50
	for i := range arrayNames {
		sizes := [6]int64{512, chunkBytes, 1000, 8, gapBytes, 0}
		sizes[i] = huge
		var r [6]*io.SectionReader
		for j, n := range sizes {
			r[j] = io.NewSectionReader(zeros{}, 0, n)
		}
		if _, err := Open(Arrays{r[0], r[1], r[2], r[3], r[4], r[5]}, 1000, nil); !ours(err) {
			t.Errorf("%s of 2^50 bytes: %v", arrayNames[i], err)
		}
	}
}

// TestMemory holds Compare to its buffers, whatever the size of the unit.
func TestMemory(t *testing.T) {
	s := encode(normalWeights(2_000_000, 9))
	u, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = u.Compare(context.Background(), bytes.NewReader(s.source), CompareOptions{Workers: 1})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err != nil || n > 1_300_000 {
		t.Errorf("%d bytes allocated to compare %d, %v", n, len(s.source), err)
	}
}
