package verify

import (
	"bytes"
	"encoding/binary"
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
