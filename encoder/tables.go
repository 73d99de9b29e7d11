package encoder

import "fmt"

// CountExponents adds the exponents of little-endian BF16 weights to counts. It takes any number of
// weights, and ignores half of one at the end.
func CountExponents(counts *[256]uint64, bf16 []byte) {
	if counts == nil {
		return
	}
	t := tallies.Get().(*tally)
	defer tallies.Put(t)
	for bf16 = bf16[:len(bf16)&^1]; len(bf16) > 0; {
		n := min(len(bf16), 2*blockElems)
		for s, n := range t.count(fastest(), bf16[:n]) {
			counts[s] += n
		}
		bf16 = bf16[n:]
	}
}

// Tables returns what the exponents of a unit decide, however its weights are ordered: its lookup
// tables, as tensor luts holds them, and its figures. It returns an [*UnsupportedError] for every
// limit that the counts show. Only the order of the weights shows the shared memory limit.
func Tables(counts [256]uint64) (luts []byte, stats Stats, err error) {
	total, n := histogram(counts), uint64(0)
	for _, count := range counts {
		if count > maxElems-n {
			return nil, stats, &UnsupportedError{ReasonTooLarge,
				fmt.Sprintf("more than %d weights", int64(maxElems))}
		}
		n += count
	}
	if n == 0 {
		return nil, stats, errEmpty
	}
	book, luts, err := total.tables()
	if err != nil {
		return nil, stats, err
	}
	return luts, Stats{Histogram: counts, NBits: book.bitsOf(&total), TieBroken: book.tied}, nil
}

// tables returns the codebook of a histogram that isn't empty, and its luts, or an
// *UnsupportedError.
func (h *histogram) tables() (book *codebook, rows []byte, err error) {
	for s := firstJump; s < len(h); s++ {
		if h[s] > 0 {
			return nil, nil, &UnsupportedError{ReasonExponentRange,
				fmt.Sprintf("exponent %d, the limit is %d", s, firstJump-1)}
		}
	}
	book = buildCodebook(h)
	rows, ok := book.luts()
	if !ok {
		return nil, nil, &UnsupportedError{ReasonOfficialCrash,
			"the end symbol's code is all zeros within the first table"}
	}
	if n := len(rows) / lutSlots; n > maxLUTRows {
		return nil, nil, &UnsupportedError{ReasonTooManyLUTs,
			fmt.Sprintf("%d lookup table rows, the limit is %d", n, maxLUTRows)}
	}
	if n := (book.bitsOf(h) + 7) / 8; n > maxCoded {
		return nil, nil, &UnsupportedError{ReasonTooLarge,
			fmt.Sprintf("%d coded bytes, the limit is %d", n, int64(maxCoded))}
	}
	return book, rows, nil
}

// bitsOf returns the length of the codes of a histogram's symbols, in bits.
func (b *codebook) bitsOf(h *histogram) (n int64) {
	for s, count := range h {
		n += int64(count) * int64(b.nBits[s])
	}
	return n
}
