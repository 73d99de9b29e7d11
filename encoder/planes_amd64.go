//go:build !noasm

package encoder

// batchElems is how many weights countPlanes takes at a time.
const batchElems = 512

// planeCounts is the state of countPlanes, which counts up to 16 chosen symbols with different low
// 6 bits by bit planes of their numbers, and all other symbols one by one.
type planeCounts struct {
	numbers [64]byte      // by the low bits of a symbol: its number; 0 if none was chosen
	meant   [64]byte      // by the low bits: the chosen symbol, or one with other low bits
	ones    [16][8]uint64 // by a set of bits: how many numbers have them all; [0] is not used
	others  [256]uint32   // symbols that were not chosen

	symbols  [16]byte // chosen symbols by number
	nSymbols int
}

// maxOtherPlanes: if more than one symbol in so many is not a chosen one, counting pairs is faster.
const maxOtherPlanes = 20

// countAVX512 counts by bit planes, with the last chosen symbols if they still serve, or pairs if
// no choice would.
func countAVX512(t *tally, h *histogram, bf16 []byte) {
	w := &t.state.planes
	nBatches := len(bf16) / (2 * batchElems)
	if last := &t.counts[t.turn^1]; nBatches == 0 || !w.serves(last) && !w.choose(last) {
		countGo(t, h, bf16)
		return
	}
	w.others = [256]uint32{}
	countPlanes(w, &bf16[0], nBatches)
	w.collect(h, uint64(nBatches*batchElems))
	h.add(bf16[nBatches*2*batchElems:])
}

// serves reports that the chosen symbols are nearly all of h, which is not empty.
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

// choose makes the most frequent symbols of h the chosen ones and reports whether they serve.
func (w *planeCounts) choose(h *histogram) bool {
	left := *h
	w.nSymbols, w.numbers = 0, [64]byte{}
	for i := range w.meant {
		w.meant[i] = byte(i ^ 1)
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
		w.numbers[low], w.meant[low] = byte(number), byte(most)
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
	for bit := 1; bit < 16; bit *= 2 { // then: and not this bit, unless it is in the index
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

// packGapsAVX512 is packGaps.
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
