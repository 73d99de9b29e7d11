//go:build (amd64 || arm64) && !noasm

package verify

// simd completes a variant with two loops in assembly, which take a positive multiple of block weights.
func simd(
	v variant, block int, same func(exponents, sm, bf16 *byte, n int) bool, join func(bf16, exponents, sm *byte, n int),
) variant {
	v.same = func(exponents, sm, bf16 []byte) bool {
		k := len(sm) - len(sm)%block
		if k > 0 {
			_, _ = exponents[k-1], bf16[2*k-1]
			if !same(&exponents[0], &sm[0], &bf16[0], k) {
				return false
			}
		}
		return sameWeightsGo(exponents[k:], sm[k:], bf16[2*k:])
	}
	v.join = func(bf16, exponents, sm []byte) {
		k := len(sm) - len(sm)%block
		if k > 0 {
			_, _ = exponents[k-1], bf16[2*k-1]
			join(&bf16[0], &exponents[0], &sm[0], k)
		}
		joinWeightsGo(bf16[2*k:], exponents[k:], sm[k:])
	}
	return v
}
