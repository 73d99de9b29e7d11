//go:build linux || darwin

package verify

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/df11-convert/df11-convert/internal/testing/alloc"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// TestWeightsStayInTheirMemory joins and compares weights that lie right before or right after a
// page without access. It changes every bit of the first ones.
func TestWeightsStayInTheirMemory(t *testing.T) {
	source := plain.Normal(300, 9)
	for _, v := range variants {
		for n := range 300 {
			exponents, sm, bf16 := alloc.Guarded(t, n), alloc.Guarded(t, n), alloc.Guarded(t, 2*n)
			for i := range bf16 {
				for j := range n {
					exponents[i][j] = source[2*j]>>7 | source[2*j+1]<<1
				}
				copy(sm[i], plain.SignMantissa(source[:2*n]))
				v.join(bf16[i], exponents[i], sm[i])
				if !bytes.Equal(bf16[i], source[:2*n]) || !v.same(exponents[i], sm[i], bf16[i]) {
					t.Fatalf("%s: %d weights are joined or compared wrongly", v.name, n)
				}
				for bit := range min(16*n, 16*130) {
					bf16[i][bit/8] ^= 1 << (bit % 8)
					if v.same(exponents[i], sm[i], bf16[i]) {
						t.Errorf("%s: %d weights, bit %d of weight %d goes unnoticed", v.name, n, bit%16, bit/16)
					}
					bf16[i][bit/8] ^= 1 << (bit % 8)
				}
			}
		}
	}
}

// TestDecodersStayInTheirMemory decodes chunks of the shortest codes, of the longest, and of
// others. Everything that the loops read and write ends at a page border.
func TestDecodersStayInTheirMemory(t *testing.T) {
	var fibonacci [256]int64
	a, b := int64(1), int64(1)
	for s := range 30 {
		fibonacci[100+s] = a
		a, b = b, a+b
	}
	tab, err := parseTables(plain.Tables(plain.Codes(&fibonacci)))
	must(t, err)
	for _, v := range variants {
		for i := range 2 {
			m := guarded[multiTable](t, i)
			*m = *newMultiTable(tab)
			chunks, got := guarded[[maxLanes]chunkStream](t, i), guarded[[maxLanes]codes](t, i)
			for turn := range maxLanes { // each lane gets each chunk
				for c := range chunks {
					for at := range chunks[c] {
						chunks[c][at] = [maxLanes]byte{0xff, 0, byte(37 * at), byte(at * at >> 3)}[(c+turn)%maxLanes]
					}
				}
				for _, start := range []int{0, 31} {
					sameDecoded(t, &v, tab, m, got[:v.lanes], chunks, start)
				}
			}
		}
	}
}

// guarded returns a T, which has no pointers, right after (0) or right before (1) a page without
// access.
func guarded[T any](t *testing.T, border int) *T {
	t.Helper()
	return (*T)(unsafe.Pointer(&alloc.Guarded(t, int(unsafe.Sizeof(*new(T))))[border][0]))
}
