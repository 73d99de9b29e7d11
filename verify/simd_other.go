//go:build !amd64 || noasm

package verify

// simdVariants is empty: there is only the variant in Go.
func simdVariants() []variant { return nil }
