//go:build !noasm

package verify

const blockWeights = 16

// simdVariants has one: every 64-bit ARM processor has NEON. It decodes as Go does.
func simdVariants() []variant { return []variant{{"neon", goLanes, groupsGo, sameSIMD, joinSIMD}} }
