//go:build !noasm

package verify

import "golang.org/x/sys/cpu"

// simdVariants needs AVX2, and BMI2 for its shifts. Only emulators have one without the other.
func simdVariants() []variant {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasBMI2 {
		return nil
	}
	return []variant{{"avx2", maxLanes, groups4, sameAVX2, joinAVX2}}
}

// groups4 is variant.groups for four lanes, in assembly.
func groups4(m *multiTable, lanes []lane) (lost uint) {
	four := (*[maxLanes]lane)(lanes)
	return groups4BMI2(m, four, four[0].codes)
}

// groups4BMI2 is the loop of groups4. cs is the first lane's codes; the codes of the other lanes
// follow it in the same array.
//
//go:noescape
func groups4BMI2(m *multiTable, lanes *[maxLanes]lane, cs *codes) (lost uint)

// blockWeights is how many weights the loops below take at a time.
const blockWeights = 32

// sameAVX2 is sameWeightsGo.
func sameAVX2(exponents, sm, bf16 []byte) bool {
	k := len(sm) - len(sm)%blockWeights
	if k > 0 {
		_, _ = exponents[k-1], bf16[2*k-1]
		if !sameBlocks(&exponents[0], &sm[0], &bf16[0], k) {
			return false
		}
	}
	return sameWeightsGo(exponents[k:], sm[k:], bf16[2*k:])
}

// joinAVX2 is joinWeightsGo.
func joinAVX2(bf16, exponents, sm []byte) {
	k := len(sm) - len(sm)%blockWeights
	if k > 0 {
		_, _ = exponents[k-1], bf16[2*k-1]
		joinBlocks(&bf16[0], &exponents[0], &sm[0], k)
	}
	joinWeightsGo(bf16[2*k:], exponents[k:], sm[k:])
}

// sameBlocks is the loop of sameAVX2. n is a positive multiple of blockWeights.
//
//go:noescape
func sameBlocks(exponents, sm, bf16 *byte, n int) bool

// joinBlocks is the loop of joinAVX2. n is a positive multiple of blockWeights.
//
//go:noescape
func joinBlocks(bf16, exponents, sm *byte, n int)
