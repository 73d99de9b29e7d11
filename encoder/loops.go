package encoder

// stripElems is how many elements inner loops take at a time. It's small enough that the next loop
// still finds them in the first-level cache.
const stripElems = 2048

// stretch is the part of a coded or mark stream that one call of an append loop may fill: at most 7
// bytes for each group of 8 elements or more, plus the extra bytes of an 8-byte store.
type stretch [2*stripElems + 8]byte

// strip holds 4 bytes for every two elements. Bytes 2 and 3 are the pair index (see pairTable),
// little-endian. Bytes 0 and 1 have the first exponent in their low bits, as many bits as the pair
// table is wide.
type strip [2 * stripElems]byte

// loops are the inner loops of one variant. Everything around them is shared, and every variant
// computes the same results.
type loops struct {
	name string

	// count adds the exponents in bf16, a multiple of 16 bytes, to t.now.
	count func(t *tally, bf16 []byte)

	// split writes the sign_mantissa byte of every weight and the indices of all pairs for a table
	// of the given width.
	split func(dst *[stripElems]byte, bf16 *[2 * stripElems]byte, idx *strip, width uint)

	paces []pace // fastest first

	// gaps packs the gaps of whole octets of marks, as packGaps does.
	gaps func(dst, marks []byte)
}

// appendLoop adds the groups of a pace to the coded and mark streams at w.at, where the stretches
// begin. idx is part of a strip, 2 bytes per element. The loop returns how many groups it added: all
// in idx, or fewer if the next group is too long for it (see pairTable).
//
// A group of 128 or 64 elements is eight runs of 16 or 8. Loops for these look up codes in the
// table's lowCodes, from indices of width lowWidth, and write only the first mark of each window.
// They may change the bytes before the stretches, back to the start of the window. A group is too
// long if one of its runs has more than 64 bits, or if it reaches beyond 511 bits from the start of
// the window.
type appendLoop func(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) (nGroups int)

// pace16 and pace8 are the paces of loops for groups of 16 and 8 elements.
func pace16(loop appendLoop) pace { return pace{16, 56, 3.1, false, loop} }
func pace8(loop appendLoop) pace  { return pace{8, 56, 5.7, false, loop} }

// fastest returns this machine's last variant.
func fastest() *loops {
	list := variants()
	return &list[len(list)-1]
}
