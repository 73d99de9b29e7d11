//go:build !noasm

package encoder

// variants lists the variants that this machine can run, slowest first. Every 64-bit ARM processor has NEON.
func variants() []loops {
	neon := goLoops
	neon.name, neon.split = "neon", splitNEON
	return []loops{goLoops, neon}
}

// variantState is the part of a pass 1 worker's state that belongs to the variants of this platform.
type variantState struct{}

//go:noescape
func splitNEON(dst *[stripElems]byte, bf16 *[2 * stripElems]byte, idx *strip, width uint)
