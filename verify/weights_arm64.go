//go:build !noasm

package verify

const blockWeights = 16

// simdVariants needs NEON, which every 64-bit ARM processor has. Decoding is that of Go.
func simdVariants() []variant { return []variant{{"neon", goLanes, groupsGo, sameSIMD, joinSIMD}} }
