//go:build !noasm

package verify

// simdVariants has one: every 64-bit ARM processor has NEON. It decodes as Go does.
func simdVariants() []variant {
	return []variant{simd(variant{name: "neon", lanes: goLanes, groups: groupsGo}, 16, sameNEON, joinNEON)}
}

//go:noescape
func sameNEON(exponents, sm, bf16 *byte, n int) bool

//go:noescape
func joinNEON(bf16, exponents, sm *byte, n int)
