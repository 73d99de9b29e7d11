package encoder

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/alloc"
)

// benchElems is the size of the units that are measured: 64 MiB of BF16, more
// than the caches hold.
const benchElems = 32 << 20

// benchWeights returns the measured unit of a shape, made once. A period of the
// data is repeated; it is much longer than any history a processor keeps.
var benchWeights = func() func(s shape) []byte {
	var mu sync.Mutex
	made := make(map[string][]byte)
	return func(s shape) []byte {
		mu.Lock()
		defer mu.Unlock()
		if made[s.name] == nil {
			made[s.name] = slices.Repeat(s.weights(7, benchElems/16), 16)
		}
		return made[s.name]
	}
}()

// rows is trained data as pass 2 meets it: the spread changes from row to row.
var rows = rowShape("rows", func(r *rand.Rand) float64 { return 0.02 * math.Exp(0.15*r.NormFloat64()) })

// spread is a unit whose rows differ by many powers of two.
var spread = rowShape("spread", func(r *rand.Rand) float64 { return math.Exp2(-30 * r.Float64()) })

func rowShape(name string, sigma func(r *rand.Rand) float64) shape {
	i, now := 0, 0.02
	return shape{name, func(r *rand.Rand) byte {
		if i++; i%4096 == 0 {
			now = sigma(r)
		}
		return exponent(bf16(float32(r.NormFloat64() * now)))
	}}
}

var benchShapes = append([]shape{rows, spread}, shapes[1:4]...)

func forBench(b *testing.B, f func(b *testing.B, o Options, bf16 []byte)) {
	for _, name := range Variants() {
		for _, s := range benchShapes {
			b.Run(name+"/"+s.name, func(b *testing.B) {
				bf16 := benchWeights(s)
				b.SetBytes(int64(len(bf16)))
				b.ReportAllocs()
				f(b, Options{Variant: name}, bf16)
			})
		}
	}
}

// BenchmarkCount is pass 1.
func BenchmarkCount(b *testing.B) {
	forBench(b, func(b *testing.B, o Options, bf16 []byte) {
		c := newBenchCounter(b, o, bf16)
		for b.Loop() {
			clear(c.counts)
			c.addAll(bf16, runtime.GOMAXPROCS(0))
		}
	})
}

func newBenchCounter(b *testing.B, o Options, bf16 []byte) *Counter {
	c, err := o.NewCounter([]int64{int64(len(bf16) / 2)})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkFinish makes codebook, tables and offsets.
func BenchmarkFinish(b *testing.B) {
	bf16 := benchWeights(rows)
	c := newBenchCounter(b, Options{}, bf16)
	c.Add(0, bf16)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Finish(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncode is pass 2.
func BenchmarkEncode(b *testing.B) {
	forBench(b, func(b *testing.B, o Options, bf16 []byte) {
		c := newBenchCounter(b, o, bf16)
		c.Add(0, bf16)
		u, err := c.Finish()
		if err != nil {
			b.Fatal(err)
		}
		_, dst := u.newEncoded()
		for b.Loop() {
			if err := u.Encode(b.Context(), alloc.Memory(bf16), dst, runtime.GOMAXPROCS(0)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
