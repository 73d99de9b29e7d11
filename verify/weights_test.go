package verify

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// TestJoin splits and joins all 65,536 weights in every variant.
func TestJoin(t *testing.T) {
	bf16 := make([]byte, 2<<16)
	exponents := make([]byte, 1<<16)
	for w := range 1 << 16 {
		binary.LittleEndian.PutUint16(bf16[2*w:], uint16(w))
		exponents[w] = uint8(w >> 7)
	}
	sm := plain.SignMantissa(bf16)
	for _, v := range variants {
		for _, n := range []int{0, 1, 3, 4, 31, 32, 33, 63, 64, 100, 129, 1 << 16} {
			got := make([]byte, 2*n)
			v.join(got, exponents[:n], sm[:n])
			if !bytes.Equal(got, bf16[:2*n]) {
				t.Errorf("%s: %d weights joined wrongly", v.name, n)
			}
		}
	}
}

// TestSame changes every bit at every position of short runs, in every variant.
func TestSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, v := range variants {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 36, 64, 65, 127, 130} {
			bf16, exponents := make([]byte, 2*n), make([]byte, n)
			for i := range n {
				w := uint16(rng.Uint32())
				binary.LittleEndian.PutUint16(bf16[2*i:], w)
				exponents[i] = uint8(w >> 7)
			}
			sm := plain.SignMantissa(bf16)
			if !v.same(exponents, sm, bf16) {
				t.Errorf("%s: %d equal weights differ", v.name, n)
			}
			for bit := range 16 * n {
				bf16[bit/8] ^= 1 << (bit % 8)
				if v.same(exponents, sm, bf16) {
					t.Errorf("%s: %d weights, bit %d of weight %d goes unnoticed", v.name, n, bit%16, bit/16)
				}
				bf16[bit/8] ^= 1 << (bit % 8)
			}
		}
	}
}
