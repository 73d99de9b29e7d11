package encoder

import "encoding/binary"

// Naive splits bf16 and adds its exponents to counts with the plainest loop: one weight at a time, one histogram. It measures
// Split and whole units and is no part of the codec. signMantissa has one byte per weight.
func Naive(signMantissa []byte, counts *[256]uint64, bf16 []byte) {
	for i := range signMantissa {
		w := binary.LittleEndian.Uint16(bf16[2*i:])
		signMantissa[i] = byte(w>>8)&0x80 | byte(w)&0x7f
		counts[byte(w>>7)]++
	}
}

// Split does the work of Naive with the inner loops of the variant, in memory and on one core: what of the two passes
// is not coding. A unit is encoded by Counter and Unit instead.
func (o Options) Split(signMantissa []byte, counts *[256]uint64, bf16 []byte) error {
	loops, err := findLoops(o.Variant)
	if err != nil {
		return err
	}
	t := tallies.Get().(*tally)
	defer tallies.Put(t)
	var idx strip
	for len(signMantissa) >= stripElems {
		n := min(blockElems, len(signMantissa)/stripElems*stripElems)
		(*histogram)(counts).addAll(t.count(loops, bf16[:2*n]))
		for ; n > 0; n -= stripElems {
			loops.split((*[stripElems]byte)(signMantissa), (*[2 * stripElems]byte)(bf16), &idx, pairWidths[0])
			signMantissa, bf16 = signMantissa[stripElems:], bf16[2*stripElems:]
		}
	}
	Naive(signMantissa, counts, bf16)
	return nil
}

func (h *histogram) addAll(other *histogram) {
	for s, n := range other {
		h[s] += n
	}
}
