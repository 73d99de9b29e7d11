package verify

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/df11-convert/df11-convert/internal/testing/golden"
)

// encode encodes weights with the code of their own histogram.
func encode(bf16 []byte) *stored {
	var hist [256]int64
	for i := 0; i < len(bf16); i += 2 {
		hist[uint8(binary.LittleEndian.Uint16(bf16[i:])>>7)]++
	}
	return storedUnit(golden.Encode(golden.Codes(&hist), []int64{int64(len(bf16) / 2)}, bf16))
}

// split divides a unit into several tensors.
func (s *stored) splitAt(ends ...int64) {
	s.sizes, s.split = nil, nil
	last := int64(0)
	for _, end := range ends {
		s.split = binary.LittleEndian.AppendUint64(s.split, uint64(end))
		s.sizes = append(s.sizes, end-last)
		last = end
	}
	s.sizes = append(s.sizes, int64(len(s.source)/2)-last)
}

// normalWeights returns n weights like those of a trained layer: normal, with a spread that varies
// by row.
func normalWeights(n int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 2*n)
	sigma := 0.02
	for i := range n {
		if i%4096 == 0 {
			sigma = 0.02 * math.Exp(0.15*rng.NormFloat64())
		}
		w := math.Float32bits(float32(rng.NormFloat64() * sigma))
		binary.LittleEndian.PutUint16(b[2*i:], uint16(w>>16))
	}
	return b
}

// fibWeights returns weights with codes of every length up to nSymbols bits. The symbol counts grow
// like Fibonacci numbers; a shuffle spreads the symbols.
func fibWeights(nSymbols int, seed uint64) []byte {
	var symbols []uint8
	a, b := 1, 1
	for s := range nSymbols {
		symbols = append(symbols, slices.Repeat([]uint8{uint8(100 + s)}, a)...)
		a, b = b, a+b
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	rng.Shuffle(len(symbols), func(i, j int) { symbols[i], symbols[j] = symbols[j], symbols[i] })
	return fromSymbols(symbols, rng)
}

// fromSymbols adds random signs and mantissas to exponents.
func fromSymbols(symbols []uint8, rng *rand.Rand) []byte {
	b := make([]byte, 2*len(symbols))
	for i, s := range symbols {
		binary.LittleEndian.PutUint16(b[2*i:], weight(s, uint8(rng.Uint32())))
	}
	return b
}
