//go:build !noasm

package verify

import "golang.org/x/sys/cpu"

const blockWeights = 32

// simdVariants needs AVX2, and BMI2 for its shifts; only emulators have one without the other.
func simdVariants() []variant {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasBMI2 {
		return nil
	}
	return []variant{{"avx2", maxLanes, groups4, sameSIMD, joinSIMD}}
}
