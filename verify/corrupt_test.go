package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/alloc"
	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// array returns the stored array with this name.
func (s *stored) array(name string) *[]byte {
	return map[string]*[]byte{
		NameLUTs: &s.luts, NameEncodedExponent: &s.stream, NameSignMantissa: &s.sm,
		NameOutputPositions: &s.positions, NameGaps: &s.gaps, NameSplitPositions: &s.split,
	}[name]
}

// testUnits are small units of different kinds: several chunks, long codes, one chunk.
func testUnits() map[string]*stored {
	units := map[string]*stored{
		"normal": encode(plain.Normal(40_000, 3)),
		"long":   encode(plain.Fibonacci(20, 4)),
		"short":  encode(plain.Normal(101, 5)),
	}
	units["normal"].splitAt(1000, 1000, 30_000)
	return units
}

// TestEveryByteCounts changes single bytes of the arrays. A strict comparison must notice every
// one.
func TestEveryByteCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, s := range testUnits() {
		mustPass(t, s)
		for _, array := range arrayNames {
			t.Run(name+"/"+array, func(t *testing.T) {
				n := len(*s.array(array))
				for i := range n {
					if inside := i >= 20 && i < n-20; inside && n*len(s.sm) > 1<<18 && rng.IntN(n) > 100 {
						continue // only some bytes of large units
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

// ours reports whether an error says that the file is wrong.
func ours(err error) bool {
	var s *StructureError
	var m *MismatchError
	return errors.As(err, &s) || errors.As(err, &m)
}

// oracle decodes as the kernel does, independently of the package's decoders. It stops before the
// first window that would hang, and at a chunk that decodes to another number of weights than
// stored.
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

// firstDifference returns the first element that differs from the source, or -1.
func firstDifference(weights []uint16, source []byte) int {
	for i, w := range weights {
		if w != binary.LittleEndian.Uint16(source[2*i:]) {
			return i
		}
	}
	return -1
}

// TestMismatchIsFirst damages arrays. A MismatchError must name what an independent decoder finds
// first, with any number of workers.
func TestMismatchIsFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, s := range testUnits() {
		for _, array := range []string{NameEncodedExponent, NameSignMantissa, NameGaps} {
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
	case first == nil:
		if want >= 0 {
			t.Errorf("element %d differs, and nothing was found", want)
		}
	case !errors.As(first, &m):
		mustBeOurs(t, first) // a chunk contradicts itself
	case elemInUnit(c, m) != want:
		t.Errorf("first difference at element %d, named %d: %v", want, elemInUnit(c, m), m)
	case m.Want != binary.LittleEndian.Uint16(c.source[2*want:]) || m.Got == m.Want:
		t.Errorf("element %d: got %#x, want %#x", want, m.Got, m.Want)
	}
}

// elemInUnit converts a tensor "#i" and its element back to an element of the unit.
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
	s := encode(plain.Normal(900_000, 6)) // several blocks
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
			if m.Unit != opt.Unit || m.Tensor != x.tensor || m.Elem != x.elem || m.Got^m.Want != 0x8000 {
				t.Errorf("element %v spoiled: %v", x.spoil, m)
			}
		}
	}
}

// failingReader fails at one byte.
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
	s := encode(plain.Normal(900_000, 6))
	for _, array := range arrayNames[1:5] {
		a := s.arrays()
		a[array] = io.NewSectionReader(failingReader{a[array], a[array].Size() - 1}, 0, a[array].Size())
		u, err := Open(a, nil)
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
	s := encode(plain.Normal(900_000, 6))
	u, err := s.open()
	must(t, err)
	ctx, cancel := context.WithCancelCause(context.Background())
	src := &cancelReader{ReaderAt: bytes.NewReader(s.source), n: 1, cancel: func() { cancel(errStop) }}
	if err := u.Compare(ctx, src, CompareOptions{Workers: 1}); !errors.Is(err, errStop) {
		t.Errorf("compare: %v", err)
	}
	if err := u.DecodeRange(ctx, 0, 1, make([]byte, 2)); !errors.Is(err, errStop) {
		t.Errorf("decode a range: %v", err)
	}
}

// cancelReader calls cancel at the nth read.
type cancelReader struct {
	io.ReaderAt
	mu     sync.Mutex
	n      int
	cancel func()
}

var errStop = errors.New("stop")

func (r *cancelReader) ReadAt(b []byte, off int64) (int, error) {
	r.mu.Lock()
	if r.n--; r.n == 0 {
		r.cancel()
	}
	r.mu.Unlock()
	return r.ReaderAt.ReadAt(b, off)
}

// A comparison allocates a few blocks, no matter how large the unit is, and units share the blocks.
func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		unit  *stored
		limit int64
	}{"small": {testUnits()["normal"], 8 << 10}, "large": {encode(plain.Normal(2_000_000, 9)), 1_300_000}} {
		u, err := c.unit.open()
		must(t, err)
		alloc.Repeated(t, c.limit, func() {
			if err := u.Compare(t.Context(), bytes.NewReader(c.unit.source), CompareOptions{Workers: 1}); err != nil {
				t.Fatal(name, err)
			}
		})
	}
}
