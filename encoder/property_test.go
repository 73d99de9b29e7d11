package encoder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/alloc"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// shape is a kind of data that is hard for the encoder in its own way.
type shape struct {
	name   string
	symbol func(r *rand.Rand) byte
}

// shapes are the distributions of the property tests.
var shapes = []shape{
	{"trained", trainedSymbol},
	{"zeros", func(r *rand.Rand) byte { // half of the weights are zero
		if r.IntN(2) == 0 {
			return 0
		}
		return trainedSymbol(r)
	}},
	{"wide", func(r *rand.Rand) byte { return byte(20 + r.IntN(200)) }},
	{"long", func(r *rand.Rand) byte { // codes of up to 30 bits
		s := 0
		for s < 40 && r.IntN(2) == 0 {
			s++
		}
		return byte(150 - s)
	}},
	{"mixed", func(r *rand.Rand) byte {
		if r.IntN(3) == 0 {
			return byte(r.IntN(240))
		}
		return byte(100 + r.IntN(4))
	}},
	{"two", func(r *rand.Rand) byte { return byte(7 + 150*r.IntN(2)) }},
}

// trainedSymbol returns the exponent of a normal variate with the spread of a trained layer.
func trainedSymbol(r *rand.Rand) byte {
	return exponent(bf16(float32(r.NormFloat64() * 0.02)))
}

// weights returns n weights of the shape as BF16 bytes.
func (s shape) weights(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	symbols := make([]byte, n)
	for i := range symbols {
		symbols[i] = s.symbol(r)
	}
	return plain.Weights(symbols)
}

// lengths are numbers of elements at which loops and blocks change pace.
var lengths = []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1000, 4096, 20000}

// blockSizes are the elements per block to try; 0 is the default size.
var blockSizes = []int{1, 2, 13, 100, 512, 777, 4096, 0}

// TestBlocksAndWorkers compares with the serial reference for block sizes down to one element and
// for several worker counts. With DF11_DEEP it runs the whole grid. Otherwise each shape takes all
// of its lengths, each with a few block sizes, so that every length meets every block size in some
// shape.
func TestBlocksAndWorkers(t *testing.T) {
	deep := os.Getenv("DF11_DEEP") != ""
	forVariants(t, func(t *testing.T, o options) {
		for i, s := range append([]shape{strays, shortCodes, longCodes}, shapes...) {
			for j, n := range lengths {
				chosen := blockSizes
				if k := (i + j) % 4; !deep {
					chosen = []int{blockSizes[k], blockSizes[k+4]}
				}
				testBlocks(t, o, s, n, chosen)
			}
		}
	})
}

func testBlocks(t *testing.T, o options, s shape, n int, blockSizes []int) {
	bf16 := s.weights(uint64(n), n)
	var h histogram
	h.add(bf16)
	for _, o.block = range blockSizes {
		if o.block == 0 || n/o.block <= 2000 {
			mustEncode(t, o, buildCodebook(&h), bf16, fmt.Sprintf("%s, n = %d", s.name, n))
		}
	}
}

// TestPieces adds a unit in uneven pieces, out of order.
func TestPieces(t *testing.T) {
	bf16 := shapes[0].weights(1, 10000)
	var h histogram
	h.add(bf16)
	c, err := options{block: 300}.newCounter([]int64{10000})
	must(t, err)
	for _, p := range [][2]int{{5000, 10000}, {0, 1}, {1, 299}, {299, 301}, {301, 5000}} {
		c.Add(int64(p[0]), bf16[2*p[0]:2*p[1]])
	}
	u, err := c.Finish()
	must(t, err)
	s, nBits := u.Stats(), int64(0)
	for e, count := range h {
		nBits += int64(count) * int64(u.book.nBits[e])
	}
	if s.Histogram != h || s.NBits != nBits || s.TieBroken {
		t.Errorf("stats: %+v", s)
	}
}

func TestCounterMisuse(t *testing.T) {
	for name, f := range map[string]func(c *Counter){
		"missing": func(c *Counter) { c.Add(0, make([]byte, 198)) },
		"odd":     func(c *Counter) { c.Add(0, make([]byte, 199)) },
		"beyond":  func(c *Counter) { c.Add(1, make([]byte, 200)) },
		"before":  func(c *Counter) { c.Add(-1, make([]byte, 200)) },
		"twice":   func(c *Counter) { c.Add(0, make([]byte, 200)); c.Add(0, make([]byte, 2)) },
	} {
		c, err := NewCounter([]int64{100})
		must(t, err)
		f(c)
		if _, err := c.Finish(); err == nil || reasonOf(err) != "" {
			t.Errorf("%s: Finish says %v", name, err)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, sizes := range [][]int64{{1 << 31}, {1 << 30, 1 << 30}, {1, 1<<63 - 1}} {
		if _, err := NewCounter(sizes); reasonOf(err) != ReasonTooLarge {
			t.Errorf("%v: %v", sizes, err)
		}
	}
	for _, sizes := range [][]int64{nil, {}, {0}, {-1}} {
		if _, err := NewCounter(sizes); err == nil || reasonOf(err) != "" {
			t.Errorf("%v: %v", sizes, err)
		}
	}
}

// failing fails every read or write with its error.
type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error)  { return 0, f.err }
func (f failing) WriteAt([]byte, int64) (int, error) { return 0, f.err }

func TestErrors(t *testing.T) {
	broken := failing{errors.New("broken")}
	bf16 := shapes[0].weights(1, 5000)
	c, _ := NewCounter([]int64{5000})
	c.addAll(bf16, 2)
	u, err := c.Finish()
	must(t, err)
	_, dst := u.newEncoded()
	if err := u.Encode(t.Context(), broken, dst, 2); !errors.Is(err, broken.err) {
		t.Error("Encode, source:", err)
	}
	if err := u.Encode(t.Context(), alloc.Memory(bf16[2:]), dst, 2); err == nil {
		t.Error("Encode, short source: no error")
	}
	gapless := func(name string) io.WriterAt {
		if name == NameGaps {
			return broken
		}
		return dst(name)
	}
	if err := u.Encode(t.Context(), alloc.Memory(bf16), gapless, 2); !errors.Is(err, broken.err) {
		t.Error("Encode, destination:", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken.err)
	if err := u.Encode(ctx, alloc.Memory(bf16), dst, 2); !errors.Is(err, broken.err) {
		t.Error("Encode, cancelled:", err)
	}
}

// If pass 2 reads other data than pass 1, it returns an error and never panics.
func TestChangedSource(t *testing.T) {
	forVariants(t, func(t *testing.T, o options) {
		o.block = 1000
		before, sizes := shapes[0].weights(1, 30000), []int64{30000}
		c, _ := o.newCounter(sizes)
		c.Add(0, before)
		u, err := c.Finish()
		must(t, err)
		for _, s := range shapes {
			_, dst := u.newEncoded()
			if err := u.Encode(t.Context(), alloc.Memory(s.weights(2, 30000)), dst, 2); !errors.Is(err, errChanged) {
				t.Errorf("%s: %v", s.name, err)
			}
		}
	})
}

// TestSharedMemory meets the limit of docs/format.md §9.3 exactly: a chunk of one-bit codes and a
// few long ones.
func TestSharedMemory(t *testing.T) {
	for _, n := range []int{maxPerChunk, maxPerChunk + 1} {
		c, _ := NewCounter([]int64{int64(n)})
		u := c.unit(newCodebook([]code{{symbol: eof, n: 1}, {symbol: 5, n: 1, bits: 1}}), &histogram{}, nil)
		err := u.checkShared([]uint32{0, uint32(n)})
		if (reasonOf(err) == ReasonSharedMemory) != (n > maxPerChunk) {
			t.Errorf("%d weights: %v", n, err)
		}
	}
}

// TestOverfull builds units that break the limit everywhere. Finish refuses them, and the check of
// Unit.Encode would, too.
func TestOverfull(t *testing.T) {
	sparse := shape{"sparse", func(r *rand.Rand) byte { return byte(max(0, 60+r.IntN(40)-r.IntN(3000))) }}
	for _, n := range []int{20_000, 40_000, 200_000, 1_000_000} {
		for _, block := range []int{1000, 0} {
			o := options{block: block}
			bf16 := sparse.weights(1, n)
			u := newTestUnit(t, o, bf16)
			_, dst := u.newEncoded()
			err := u.Encode(t.Context(), alloc.Memory(bf16), dst, 2)
			if refused := reasonOf(err) == ReasonSharedMemory; refused != (n > maxPerChunk) || u.overfull() && !refused {
				t.Errorf("%d elements, block %d: overfull %v, encode: %v", n, block, u.overfull(), err)
			}
			if n == 1_000_000 {
				if _, err := o.encode([]int64{int64(n)}, bf16, 1); reasonOf(err) != ReasonSharedMemory || !u.overfull() {
					t.Errorf("%d elements, block %d: %v", n, block, err)
				}
			}
		}
	}
}

// bf16 rounds to the nearest BF16, ties to even, and returns its bytes.
func bf16(f float32) []byte {
	b := math.Float32bits(f)
	b += 0x7fff + b>>16&1
	return []byte{byte(b >> 16), byte(b >> 24)}
}
