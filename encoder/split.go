package encoder

// exponent returns the symbol of a little-endian BF16 weight, docs/format.md §2.
func exponent(bf16 []byte) byte { return bf16[1]<<1 | bf16[0]>>7 }

// signMantissa returns the stored byte beside it, docs/format.md §2.
func signMantissa(bf16 []byte) byte { return bf16[1]&0x80 | bf16[0]&0x7f }

func countGo(h *histogram, bf16 []byte) {
	for ; len(bf16) >= 2; bf16 = bf16[2:] {
		h[exponent(bf16)]++
	}
}

func splitGo(dst, bf16 []byte) {
	for i := range dst {
		dst[i] = signMantissa(bf16[2*i:])
	}
}
