//go:build !amd64 || noasm

package verify

// simdVariants returns nil: only the variant in Go runs here.
func simdVariants() []variant { return nil }
