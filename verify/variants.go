package verify

// variant is a way to decode chunks, and to compare and join weights. All variants have the same
// results. exponents and sm have n bytes, bf16 has 2n.
type variant struct {
	name  string
	lanes int // how many chunks groups takes
	// does groups of lookups in all lanes, whose codes are neighbors in one array, in turns. It
	// stops when a lane is past its chunk, or meets a code that the table lacks; bit i of lost says
	// that lane i did. All lanes must start inside their chunks. nil: lanes are decoded one by one
	groups func(m *multiTable, lanes []lane) (lost uint)
	// reports whether exponents and sm make the little-endian weights in bf16
	same func(exponents, sm, bf16 []byte) bool
	join func(bf16, exponents, sm []byte) // writes the weights of exponents and sm to bf16
}

// variants lists the variants that this machine can run, slowest first.
var variants = append([]variant{{"go", 1, nil, sameWeightsGo, joinWeightsGo}},
	simdVariants()...)

// fastest returns the variant for everything but tests.
func fastest() *variant { return &variants[len(variants)-1] }
