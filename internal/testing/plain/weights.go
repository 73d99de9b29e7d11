package plain

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
)

// Normal returns n weights like those of a trained layer: normal, with a spread that varies
// by row.
func Normal(n int, seed uint64) []byte {
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

// Fibonacci returns weights with codes of every length up to nSymbols bits. The symbol counts grow
// like Fibonacci numbers; a shuffle spreads the symbols.
func Fibonacci(nSymbols int, seed uint64) []byte {
	var symbols []uint8
	a, b := 1, 1
	for s := range nSymbols {
		symbols = append(symbols, slices.Repeat([]uint8{uint8(100 + s)}, a)...)
		a, b = b, a+b
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	rng.Shuffle(len(symbols), func(i, j int) { symbols[i], symbols[j] = symbols[j], symbols[i] })
	return Weights(symbols)
}

// Weights returns one weight per exponent, with all kinds of signs and mantissas.
func Weights(exponents []byte) []byte {
	out := make([]byte, 0, 2*len(exponents))
	for i, s := range exponents {
		sm := byte(167*i + 13)
		out = append(out, s<<7|sm&0x7f, s>>1|sm&0x80)
	}
	return out
}
