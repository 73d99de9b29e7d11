//go:build !noasm

package verify

import "golang.org/x/sys/cpu"

// variantSIMD is the variant of sameBlocks and joinBlocks, empty where the machine cannot run it.
var variantSIMD = func() string {
	if !cpu.X86.HasAVX2 {
		return ""
	}
	return "avx2"
}()

// sameBlocks is sameWeights for the first k elements, as many as it can take at once.
func sameBlocks(exponents, sm, bf16 []byte) (k int, same bool) {
	if k = len(sm) &^ 31; k == 0 || !cpu.X86.HasAVX2 {
		return 0, true
	}
	_, _ = exponents[k-1], bf16[2*k-1]
	return k, sameAVX2(&exponents[0], &sm[0], &bf16[0], k)
}

// joinBlocks is joinWeights for the first k elements, as many as it can take at once.
func joinBlocks(bf16, exponents, sm []byte) (k int) {
	if k = len(sm) &^ 31; k == 0 || !cpu.X86.HasAVX2 {
		return 0
	}
	_, _ = exponents[k-1], bf16[2*k-1]
	joinAVX2(&bf16[0], &exponents[0], &sm[0], k)
	return k
}

//go:noescape
func sameAVX2(exponents, sm, bf16 *byte, n int) bool

//go:noescape
func joinAVX2(bf16, exponents, sm *byte, n int)
