//go:build !amd64 || noasm

package encoder

// variants lists the variants that this machine can run, slowest first.
func variants() []loops { return []loops{goLoops} }

// variantState is what a tally keeps for the variants of this platform.
type variantState struct{}
