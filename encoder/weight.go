package encoder

// exponent returns the symbol of a little-endian BF16 weight, docs/format.md §2.
func exponent(bf16 []byte) byte { return bf16[1]<<1 | bf16[0]>>7 }

// signMantissa returns the stored byte beside it, docs/format.md §2.
func signMantissa(bf16 []byte) byte { return bf16[1]&0x80 | bf16[0]&0x7f }
