package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"testing"
)

// benchElems is the size of the benchmarks' unit: 64 MiB of BF16, twice a large cache.
const benchElems = 32 << 20

var benchUnit = sync.OnceValue(func() *stored { return encode(normalWeights(benchElems, 1)) })

func openBench(b *testing.B) (*stored, *Unit) {
	b.Helper()
	s := benchUnit()
	u, err := s.open()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(s.source)))
	b.ReportAllocs()
	return s, u
}

// naiveSplit is the yardstick of docs/performance.md: the plain loop with one histogram.
func naiveSplit(bf16, sm []byte, hist *[256]uint32) {
	for i := range sm {
		w := binary.LittleEndian.Uint16(bf16[2*i:])
		hist[uint8(w>>7)]++
		sm[i] = uint8(w>>8&0x80) | uint8(w&0x7f)
	}
}

func BenchmarkNaive(b *testing.B) {
	s, _ := openBench(b)
	sm := make([]byte, benchElems)
	var hist [256]uint32
	for b.Loop() {
		naiveSplit(s.source, sm, &hist)
	}
}

// BenchmarkVerify is the full verification of a unit in memory.
func BenchmarkVerify(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(map[int]string{1: "1core", 2: "2cores"}[workers], func(b *testing.B) {
			s, u := openBench(b)
			src := bytes.NewReader(s.source)
			for b.Loop() {
				if err := u.Compare(context.Background(), src, CompareOptions{Workers: workers}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpen is what a unit costs before its first weight.
func BenchmarkOpen(b *testing.B) {
	s, _ := openBench(b)
	b.SetBytes(0)
	for b.Loop() {
		if _, err := s.open(); err != nil {
			b.Fatal(err)
		}
	}
}
