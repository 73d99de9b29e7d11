//go:build !noasm

package verify

import "golang.org/x/sys/cpu"

const blockWeights = 32

// simdVariants has one where there is AVX2. It decodes with the shifts of BMI2, which no processor with AVX2 lacks except in
// emulators.
func simdVariants() []variant {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasBMI2 {
		return nil
	}
	return []variant{{"avx2", maxLanes, groups4, sameSIMD, joinSIMD}}
}
