//go:build !noasm

package encoder

// pieceElems is how many exponents countBandAVX2 holds at a time: at most 255 for each of a vector's 32 byte counters.
const pieceElems = 4096

// bandCounts is the state of countBandAVX2, which counts 17 symbols by comparing and all others one by one.
type bandCounts struct {
	symbols [17][32]byte // each of them 32 times; the last is not in the band
	counts  [17][4]uint64
	others  [256]uint32
	piece   [pieceElems]byte //nolint:unused // only the assembly does
}

// maxOthers: if more than one symbol in so many lies outside the band, counting pairs is faster.
const maxOthers = 200

// countAVX2 counts with a band around the most frequent exponents of the last piece, or pairs if too many lie outside it.
func countAVX2(t *tally, h *histogram, bf16 []byte) {
	low, extra, ok := t.band()
	nPieces := len(bf16) / (2 * pieceElems)
	if !ok || nPieces == 0 {
		countGo(t, h, bf16)
		return
	}
	w := &t.state.band
	w.set(low, extra)
	countBandAVX2(w, &bf16[0], nPieces)
	w.collect(h)
	h.add(bf16[nPieces*2*pieceElems:])
}

// band chooses the symbols to count by comparing: 16 neighbors and one other. ok is false if they would have left out
// too many of the last piece, or if there was no last piece.
func (t *tally) band() (low, extra int, ok bool) {
	h := &t.counts[t.turn^1]
	most, total := 0, uint64(0)
	for s, n := range h {
		total += n
		if n > h[most] {
			most = s
		}
	}
	// The most frequent symbol is usually inside the band, but it may also stand alone, as zero does.
	low, inside := h.bestBand(-1)
	extra = h.mostOutside(low)
	if low2, inside2 := h.bestBand(most); (most < low2 || most >= low2+16) && inside2+h[most] > inside+h[extra] {
		low, inside, extra = low2, inside2, most
	}
	return low, extra, total > 0 && (total-inside-h[extra])*maxOthers <= total
}

// bestBand returns the 16 neighboring symbols that are most frequent together, not counting symbol without.
func (h *histogram) bestBand(without int) (low int, inside uint64) {
	var sum uint64
	for s := range h {
		if s != without {
			sum += h[s]
		}
		if s >= 16 && s-16 != without {
			sum -= h[s-16]
		}
		if s >= 15 && sum > inside {
			low, inside = s-15, sum
		}
	}
	return low, inside
}

// mostOutside returns the most frequent symbol that is not in the band.
func (h *histogram) mostOutside(low int) int {
	extra := (low + 16) % len(h)
	for s, n := range h {
		if (s < low || s >= low+16) && n > h[extra] {
			extra = s
		}
	}
	return extra
}

// set makes w count from zero.
func (w *bandCounts) set(low, extra int) {
	for k := range 17 {
		s := low + k
		if k == 16 {
			s = extra
		}
		for i := range w.symbols[k] {
			w.symbols[k][i] = byte(s)
		}
	}
	w.counts, w.others = [17][4]uint64{}, [256]uint32{}
}

// collect adds the counts to h.
func (w *bandCounts) collect(h *histogram) {
	for k, lanes := range w.counts {
		for _, n := range lanes {
			h[w.symbols[k][0]] += n
		}
	}
	for s, n := range w.others {
		h[s] += uint64(n)
	}
}

//go:noescape
func countBandAVX2(w *bandCounts, bf16 *byte, nPieces int)
