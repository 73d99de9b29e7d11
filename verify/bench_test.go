package verify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
)

// benchElems is the size of the main unit: 64 MiB of BF16, twice a large cache.
const benchElems = 32 << 20

// benchUnits are made once: weights like those of a trained layer, the same with every second one zero,
// and 120 exponents alike, whose codes have 6 and 7 bits.
var benchUnits = map[string]func() *stored{
	"normal": sync.OnceValue(func() *stored { return encode(normalWeights(benchElems, 1)) }),
	"zeros": sync.OnceValue(func() *stored {
		b := normalWeights(benchElems/4, 2)
		for i := 0; i < len(b); i += 4 {
			b[i], b[i+1] = 0, 0
		}
		return encode(b)
	}),
	"wide": sync.OnceValue(func() *stored {
		rng := rand.New(rand.NewPCG(3, 3))
		symbols := make([]uint8, benchElems/4)
		for i := range symbols {
			symbols[i] = uint8(40 + rng.IntN(120))
		}
		return encode(fromSymbols(symbols, rng))
	}),
}

func openBench(b *testing.B, name string) (*stored, *Unit) {
	b.Helper()
	s := benchUnits[name]()
	u, err := s.open()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(s.source)))
	b.ReportAllocs()
	return s, u
}

func benchCompare(b *testing.B, u *Unit, src io.ReaderAt, workers int) {
	for b.Loop() {
		if err := u.Compare(context.Background(), src, CompareOptions{Workers: workers}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerify is the full verification of a unit in memory: decode, gaps, positions, all 16 bits.
func BenchmarkVerify(b *testing.B) {
	for _, name := range []string{"normal", "zeros", "wide"} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/workers=%d", name, workers), func(b *testing.B) {
				s, u := openBench(b, name)
				benchCompare(b, u, bytes.NewReader(s.source), workers)
			})
		}
	}
}

// BenchmarkDecode writes the weights out again.
func BenchmarkDecode(b *testing.B) {
	s, u := openBench(b, "normal")
	out := make([]byte, len(s.source))
	for b.Loop() {
		if err := u.DecodeRange(context.Background(), 0, u.NElems(), out); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInner measures the inner loops on a few chunks whose buffers stay in cache.
func BenchmarkInner(b *testing.B) {
	inner := []struct {
		name string
		do   func(*Unit, *block)
	}{
		{"serial", func(u *Unit, blk *block) {
			for i := range blk.codes {
				d := &blk.chunks[i]
				blk.codes[i].decodeSerial(u.tables, d.stream, d.start(), chunkBits, maxCodes)
			}
		}},
		{"two", func(u *Unit, blk *block) { decodeAll(u, &variants[0], blk) }},
		{"lanes", func(u *Unit, blk *block) { decodeAll(u, fastest(), blk) }},
		{"gaps", func(_ *Unit, blk *block) {
			for i := range blk.codes {
				blk.codes[i].checkGaps(blk.chunks[i].gaps, chunkWindows)
			}
		}},
		{"same", func(_ *Unit, blk *block) { eachWeights(blk, fastest().same) }},
		{"same_go", func(_ *Unit, blk *block) { eachWeights(blk, sameWeightsGo) }},
	}
	for _, in := range inner {
		b.Run(in.name, func(b *testing.B) {
			s, u := openBench(b, "normal")
			blk := new(block)
			if err := u.load(blk, chunkRange{16, maxLanes}, bytes.NewReader(s.source)); err != nil {
				b.Fatal(err)
			}
			if err := u.compareBlock(blk, nil, fastest()); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(blk.bf16)))
			for b.Loop() {
				in.do(u, blk)
			}
		})
	}
}

func decodeAll(u *Unit, v *variant, blk *block) {
	for first := 0; first < maxLanes; first += v.lanes {
		for i := range v.lanes {
			blk.chunks[i] = blk.chunk(&u.layout, first+i)
		}
		u.decode(v, blk, v.lanes)
	}
}

func eachWeights(blk *block, same func(exponents, sm, bf16 []byte) bool) {
	for i := range blk.codes {
		d := &blk.chunks[i]
		same(blk.codes[i].exponents[:d.n], d.sm, d.bf16)
	}
}
