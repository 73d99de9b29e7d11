package verify

import "fmt"

// variantGo is the variant that every machine can run.
const variantGo = "go"

// Variants lists the ways of comparing weights that this machine can run, slowest first.
func Variants() []string {
	if variantSIMD == "" {
		return []string{variantGo}
	}
	return []string{variantGo, variantSIMD}
}

// findSame returns the named variant's sameWeights, or the fastest for the empty name.
func findSame(variant string) (func(exponents, sm, bf16 []byte) bool, error) {
	if variant == variantGo {
		return sameWeightsGo, nil
	}
	if variant == "" || variant == variantSIMD {
		return sameWeights, nil
	}
	return nil, fmt.Errorf("verify variant %q: this machine has %v", variant, Variants())
}
