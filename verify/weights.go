package verify

import "encoding/binary"

// weight joins an exponent with its sign_mantissa byte (docs/format.md §9).
func weight(exponent, sm uint8) uint16 {
	return uint16(sm&0x80)<<8 | uint16(exponent)<<7 | uint16(sm&0x7f)
}

func sameWeightsGo(exponents, sm, bf16 []byte) bool {
	n := len(sm)
	exponents, bf16 = exponents[:n], bf16[:2*n]
	diff := uint64(0)
	i := 0
	for ; i+4 <= n; i += 4 {
		e, s := binary.LittleEndian.Uint32(exponents[i:i+4]), binary.LittleEndian.Uint32(sm[i:i+4])
		diff |= weight4(e, s) ^ binary.LittleEndian.Uint64(bf16[2*i:2*i+8])
	}
	for ; i < n; i++ {
		diff |= uint64(weight(exponents[i], sm[i]) ^ binary.LittleEndian.Uint16(bf16[2*i:]))
	}
	return diff == 0
}

func joinWeightsGo(bf16, exponents, sm []byte) {
	n := len(sm)
	exponents, bf16 = exponents[:n], bf16[:2*n]
	i := 0
	for ; i+4 <= n; i += 4 {
		e, s := binary.LittleEndian.Uint32(exponents[i:i+4]), binary.LittleEndian.Uint32(sm[i:i+4])
		binary.LittleEndian.PutUint64(bf16[2*i:2*i+8], weight4(e, s))
	}
	for ; i < n; i++ {
		binary.LittleEndian.PutUint16(bf16[2*i:], weight(exponents[i], sm[i]))
	}
}

// weight4 is weight for four neighbors at once.
func weight4(exponents, sm uint32) uint64 {
	e, s := unpack4(exponents), unpack4(sm)
	const sign = 0x0080008000800080
	return e<<7 + s + s&sign*(1<<8-1) // shift the sign up by 8: add it 256 times, subtract it once
}

// unpack4 spreads four bytes over four 16-bit fields.
func unpack4(b uint32) uint64 {
	v := (uint64(b) | uint64(b)<<16) & 0x0000ffff0000ffff
	return (v | v<<8) & 0x00ff00ff00ff00ff
}
