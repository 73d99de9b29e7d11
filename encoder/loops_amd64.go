//go:build !noasm

package encoder

import "golang.org/x/sys/cpu"

// variants lists the variants that this machine can run, slowest first.
func variants() []loops {
	list := []loops{goLoops}
	if cpu.X86.HasAVX2 && cpu.X86.HasBMI1 && cpu.X86.HasBMI2 {
		list = append(list, avx2Loops)
	}
	if len(list) == 2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ &&
		cpu.X86.HasAVX512CD &&
		cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512VBMI2 && cpu.X86.HasAVX512VPOPCNTDQ {
		list = append(list, avx512Loops)
	}
	return list
}

// variantState is what a tally keeps for the variants of this platform.
type variantState struct{ planes planeCounts }

// avx2Loops needs AVX2 and BMI2, in processors since 2013 (Intel) and 2015 (AMD).
var avx2Loops = loops{
	name: "avx2", count: countGo, split: splitAVX2, gaps: packGaps,
	paces: []pace{pace16(append16AVX2), pace8(append8AVX2)},
}

// avx512Loops needs parts of AVX-512 that processors have since Ice Lake (Intel, 2019) and Zen 4
// (AMD, 2022). These processors don't slow down for 512-bit vectors.
var avx512Loops = loops{
	name: "avx512", count: countAVX512, split: splitAVX512, gaps: packGapsAVX512,
	paces: []pace{{128, 512, 3.3, true, append128AVX512}, {64, 512, 6.2, true, append64AVX512},
		pace16(append16AVX2), pace8(append8AVX2)},
}

//go:noescape
func splitAVX2(dst *[stripElems]byte, bf16 *[2 * stripElems]byte, idx *strip, width uint)

//go:noescape
func append16AVX2(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) int

//go:noescape
func append8AVX2(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) int

//go:noescape
func append128AVX512(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) int

//go:noescape
func append64AVX512(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) int
