//go:build !noasm

package verify

import "golang.org/x/sys/cpu"

// simdVariants lists the SIMD variants that this machine can run, slowest first. VBMI2 stands for the processors (Ice Lake,
// Zen 4 and later) that do not slow down for 512-bit vectors; the encoder's variant of the same name needs it, too. All of them
// decode alike, with the shifts of BMI2, which no processor with AVX2 lacks except in emulators.
func simdVariants() (list []variant) {
	if !cpu.X86.HasBMI2 {
		return nil
	}
	if cpu.X86.HasAVX2 {
		list = append(list, simd(variant{name: "avx2", lanes: maxLanes, groups: groups4}, 32, sameAVX2, joinAVX2))
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI2 {
		list = append(list, simd(variant{name: "avx512", lanes: maxLanes, groups: groups4}, 64, sameAVX512, joinAVX512))
	}
	return list
}

//go:noescape
func sameAVX2(exponents, sm, bf16 *byte, n int) bool

//go:noescape
func joinAVX2(bf16, exponents, sm *byte, n int)

//go:noescape
func sameAVX512(exponents, sm, bf16 *byte, n int) bool

//go:noescape
func joinAVX512(bf16, exponents, sm *byte, n int)
