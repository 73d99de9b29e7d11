//go:build !amd64 || noasm

package encoder

// variants lists the variants that this machine can run, slowest first.
func variants() []loops { return []loops{goLoops} }

// variantState is the part of a pass 1 worker's state that belongs to the variants of this
// platform.
type variantState struct{}
