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
		list = append(list, simd("avx2", 32, sameAVX2, joinAVX2))
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI2 {
		list = append(list, simd("avx512", 64, sameAVX512, joinAVX512))
	}
	return list
}

// simd makes a variant of two loops in assembly, which take a positive multiple of block weights.
func simd(
	name string, block int, same func(exponents, sm, bf16 *byte, n int) bool, join func(bf16, exponents, sm *byte, n int),
) variant {
	return variant{
		name: name, lanes: maxLanes, groups: groups4,
		same: func(exponents, sm, bf16 []byte) bool {
			k := len(sm) - len(sm)%block
			if k > 0 {
				_, _ = exponents[k-1], bf16[2*k-1]
				if !same(&exponents[0], &sm[0], &bf16[0], k) {
					return false
				}
			}
			return sameWeightsGo(exponents[k:], sm[k:], bf16[2*k:])
		},
		join: func(bf16, exponents, sm []byte) {
			k := len(sm) - len(sm)%block
			if k > 0 {
				_, _ = exponents[k-1], bf16[2*k-1]
				join(&bf16[0], &exponents[0], &sm[0], k)
			}
			joinWeightsGo(bf16[2*k:], exponents[k:], sm[k:])
		},
	}
}

//go:noescape
func sameAVX2(exponents, sm, bf16 *byte, n int) bool

//go:noescape
func joinAVX2(bf16, exponents, sm *byte, n int)

//go:noescape
func sameAVX512(exponents, sm, bf16 *byte, n int) bool

//go:noescape
func joinAVX512(bf16, exponents, sm *byte, n int)
