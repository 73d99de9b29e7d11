package verify

import "fmt"

// variantGo is the variant that every machine can run.
const variantGo = "go"

// Variants lists the ways of comparing weights that this machine can run, slowest first.
func Variants() []string {
	names := []string{variantGo}
	for i := range simdVariants {
		names = append(names, simdVariants[i].name)
	}
	return names
}

// findSame returns the named variant's sameWeights, or the fastest for the empty name.
func findSame(variant string) (func(exponents, sm, bf16 []byte) bool, error) {
	switch variant {
	case "":
		return sameWeights, nil
	case variantGo:
		return sameWeightsGo, nil
	}
	for i := range simdVariants {
		if simdVariants[i].name == variant {
			return simdVariants[i].sameWeights, nil
		}
	}
	return nil, fmt.Errorf("verify variant %q: this machine has %v", variant, Variants())
}
