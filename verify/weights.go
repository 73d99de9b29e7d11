package verify

import "encoding/binary"

// weight joins an exponent with its sign_mantissa byte (docs/format.md §9).
func weight(exponent, sm uint8) uint16 {
	return uint16(sm&0x80)<<8 | uint16(exponent)<<7 | uint16(sm&0x7f)
}

// sameWeights reports whether exponents and sm, [n] each, make up the little-endian BF16 weights
// in bf16, [2n].
func sameWeights(exponents, sm, bf16 []byte) bool {
	for i, s := range sm {
		if weight(exponents[i], s) != binary.LittleEndian.Uint16(bf16[2*i:]) {
			return false
		}
	}
	return true
}

// joinWeights writes the BF16 weights of exponents and sm, [n] each, to bf16, [2n].
func joinWeights(bf16, exponents, sm []byte) {
	for i, s := range sm {
		binary.LittleEndian.PutUint16(bf16[2*i:], weight(exponents[i], s))
	}
}
