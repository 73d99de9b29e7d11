//go:build !amd64 || noasm

package encoder

// variants lists what this machine can run, slowest first.
func variants() []loops { return []loops{goLoops} }

// variantState is what a worker of pass 1 keeps for the variants of this platform.
type variantState struct{}
