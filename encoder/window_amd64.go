//go:build !noasm

package encoder

// pieceElems is how many exponents countWindowAVX2 holds at a time: at most 255
// for each of a vector's 32 byte counters.
const pieceElems = 4096

// windowCounts is the state of countWindowAVX2: it counts 16 neighbouring
// symbols and one other by comparing, and whatever else occurs one by one.
type windowCounts struct {
	symbols [17][32]byte // each of them 32 times; the last is not in the window
	counts  [17][4]uint64
	others  [256]uint32
	piece   [pieceElems]byte
}

// maxOthers is the share of symbols outside the window, one in so many, above
// which counting pairs is faster.
const maxOthers = 200

// countAVX2 counts with a window around the exponents that were most frequent
// in the piece before. If that leaves too many outside, it counts pairs.
func countAVX2(t *tally, h *histogram, bf16 []byte) {
	low, extra, ok := t.window()
	nPieces := len(bf16) / (2 * pieceElems)
	if !ok || nPieces == 0 {
		countGo(t, h, bf16)
		return
	}
	w := &t.state.window
	w.set(low, extra)
	countWindowAVX2(w, &bf16[0], nPieces)
	w.collect(h)
	h.add(bf16[nPieces*2*pieceElems:])
}

// window chooses what to count by comparing: the 16 neighbouring symbols that
// were most frequent in the last piece, and the most frequent other one. ok is
// false if that leaves out too many, or if there was no piece.
func (t *tally) window() (low, extra int, ok bool) {
	h := &t.counts[t.turn^1]
	var sum, best, total uint64
	for s, n := range h {
		total += n
		sum += n
		if s >= 16 {
			sum -= h[s-16]
		}
		if s >= 15 && sum > best {
			low, best = s-15, sum
		}
	}
	extra = (low + 16) % len(h)
	for s, n := range h {
		if (s < low || s >= low+16) && n > h[extra] {
			extra = s
		}
	}
	return low, extra, total > 0 && (total-best-h[extra])*maxOthers <= total
}

// set makes w count anew.
func (w *windowCounts) set(low, extra int) {
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

// collect adds what was counted to h.
func (w *windowCounts) collect(h *histogram) {
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
func countWindowAVX2(w *windowCounts, bf16 *byte, nPieces int)
