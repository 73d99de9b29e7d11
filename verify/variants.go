package verify

import "fmt"

// variant is a way to decode chunks, and to compare and join weights, with the same results as all others. exponents and sm
// have n bytes, bf16 2n.
type variant struct {
	name   string
	lanes  int                                    // how many chunks groups takes
	groups func(m *multiTable, lanes []lane) uint // see groupsGo; the lanes' codes are neighbors in one array
	same   func(exponents, sm, bf16 []byte) bool  // reports whether exponents and sm make up the little-endian weights in bf16
	join   func(bf16, exponents, sm []byte)       // writes the weights of exponents and sm to bf16
}

// variants lists the variants that this machine can run, slowest first.
var variants = append([]variant{{"go", goLanes, groupsGo, sameWeightsGo, joinWeightsGo}}, simdVariants()...)

// fastest returns the last variant.
func fastest() *variant { return &variants[len(variants)-1] }

// Variants lists the ways of decoding and comparing that this machine can run, slowest first.
func Variants() []string {
	var names []string
	for i := range variants {
		names = append(names, variants[i].name)
	}
	return names
}

// findVariant returns the named variant, or the fastest for the empty name.
func findVariant(name string) (*variant, error) {
	if name == "" {
		return fastest(), nil
	}
	for i := range variants {
		if variants[i].name == name {
			return &variants[i], nil
		}
	}
	return nil, fmt.Errorf("verify variant %q: this machine has %v", name, Variants())
}
