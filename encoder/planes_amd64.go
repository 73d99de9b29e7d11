//go:build !noasm

package encoder

// batchElems is how many weights countPlanes takes at a time.
const batchElems = 512

// planeCounts is the state of countPlanes. It numbers up to 16 chosen symbols, whose low 6
// bits differ, and counts them by the bit planes of these numbers. It counts all other symbols one by
// one.
type planeCounts struct {
	numbers [64]byte      // number of the symbol with these low bits; 0 if none is chosen
	chosen  [64]byte      // the chosen symbol with these low bits, or a symbol with other low bits
	ones    [16][8]uint64 // by a set of bits: how many numbers have them all; [0] is unused
	others  [256]uint32   // symbols that aren't chosen

	symbols  [16]byte // chosen symbols by number
	nSymbols int
}

// If more than one symbol in maxOtherPlanes isn't a chosen one, counting pairs is faster.
const maxOtherPlanes = 20

// countAVX512 counts by bit planes. It keeps the chosen symbols while they serve. If no choice
// would serve, it counts pairs.
func countAVX512(t *tally, bf16 []byte) {
	w := &t.state.planes
	nBatches := len(bf16) / (2 * batchElems)
	if nBatches == 0 || !w.serves(&t.last) && !w.choose(&t.last) {
		countGo(t, bf16)
		return
	}
	w.others = [256]uint32{}
	countPlanes(w, &bf16[0], nBatches)
	w.collect(&t.now, uint64(nBatches*batchElems))
	t.now.add(bf16[nBatches*2*batchElems:])
}

// serves reports whether nearly all symbols of h, which isn't empty, are chosen ones.
func (w *planeCounts) serves(h *histogram) bool {
	var total, chosen uint64
	for _, n := range h {
		total += n
	}
	for _, s := range w.symbols[:w.nSymbols] {
		chosen += h[s]
	}
	return total > 0 && (total-chosen)*maxOtherPlanes <= total
}

// choose chooses the most frequent symbols of h and reports whether they serve.
func (w *planeCounts) choose(h *histogram) bool {
	left := *h
	w.nSymbols, w.numbers = 0, [64]byte{}
	for i := range w.chosen {
		w.chosen[i] = byte(i ^ 1)
	}
	for number := range w.symbols {
		most := 0
		for s, n := range left {
			if n > left[most] {
				most = s
			}
		}
		if left[most] == 0 {
			break
		}
		low := most % 64
		w.symbols[number], w.nSymbols = byte(most), number+1
		w.numbers[low], w.chosen[low] = byte(number), byte(most)
		for s := low; s < 256; s += 64 {
			left[s] = 0
		}
	}
	return w.serves(h)
}

// collect adds the counts of nElems elements to h.
func (w *planeCounts) collect(h *histogram, nElems uint64) {
	var exactly [16]uint64 // first: how many numbers have all bits of the index
	exactly[0] = nElems
	for set := 1; set < 16; set++ {
		for _, n := range w.ones[set] {
			exactly[set] += n
		}
	}
	for bit := 1; bit < 16; bit *= 2 { // then: and not this bit, unless the index has it
		for set := range exactly {
			if set&bit == 0 {
				exactly[set] -= exactly[set|bit]
			}
		}
	}
	for number, s := range w.symbols[:w.nSymbols] {
		h[s] += exactly[number]
	}
	for s, n := range w.others { // they were counted under the number of their low bits
		if n > 0 {
			h[s] += uint64(n)
			h[w.symbols[w.numbers[s%64]]] -= uint64(n)
		}
	}
}

// packGapsAVX512 computes what packGaps does.
func packGapsAVX512(dst, marks []byte) {
	if nOctets := len(marks) / (octetBits / 8); nOctets > 0 {
		_ = dst[5*nOctets+2]
		packGapsOctets(&dst[0], &marks[0], nOctets)
	}
}

// countPlanes sets w.ones to the counts of nBatches batches, at least one, and adds to w.others.
//
//go:noescape
func countPlanes(w *planeCounts, bf16 *byte, nBatches int)

//go:noescape
func splitAVX512(dst *[stripElems]byte, bf16 *[2 * stripElems]byte, idx *strip, width uint)

//go:noescape
func packGapsOctets(dst, marks *byte, nOctets int)
