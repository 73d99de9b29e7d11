package encoder

// exponent returns the symbol of a little-endian BF16 weight (docs/format.md §2).
func exponent(bf16 []byte) byte { return bf16[1]<<1 | bf16[0]>>7 }
