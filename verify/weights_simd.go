//go:build (amd64 || arm64) && !noasm

package verify

// sameSIMD is sameWeightsGo.
func sameSIMD(exponents, sm, bf16 []byte) bool {
	k := len(sm) - len(sm)%blockWeights
	if k > 0 {
		_, _ = exponents[k-1], bf16[2*k-1]
		if !sameBlocks(&exponents[0], &sm[0], &bf16[0], k) {
			return false
		}
	}
	return sameWeightsGo(exponents[k:], sm[k:], bf16[2*k:])
}

// joinSIMD is joinWeightsGo.
func joinSIMD(bf16, exponents, sm []byte) {
	k := len(sm) - len(sm)%blockWeights
	if k > 0 {
		_, _ = exponents[k-1], bf16[2*k-1]
		joinBlocks(&bf16[0], &exponents[0], &sm[0], k)
	}
	joinWeightsGo(bf16[2*k:], exponents[k:], sm[k:])
}

// sameBlocks is the loop of sameSIMD. n is a positive multiple of blockWeights.
//
//go:noescape
func sameBlocks(exponents, sm, bf16 *byte, n int) bool

// joinBlocks is the loop of joinSIMD. n is a positive multiple of blockWeights.
//
//go:noescape
func joinBlocks(bf16, exponents, sm *byte, n int)
