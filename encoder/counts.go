package encoder

import (
	"slices"
	"sync"
)

// pairCounts counts pairs of neighboring exponents. The low byte of the index is the first
// exponent. Pairs go to the two tables in turn: with one table, a run of equal pairs would wait for
// its own previous count.
type pairCounts [2][1 << 16]uint32

// tally counts exponents piece by piece. It's faster if a piece resembles the pieces before it.
type tally struct {
	pairs     pairCounts // zero between pieces
	seen      []byte     // exponents seen so far
	now, last histogram  // of this piece and of the previous one
	state     variantState
}

// tallies holds idle tallies. Units share them: a tally takes half a mebibyte, and hundreds of
// units may be counted at the same time.
var tallies = sync.Pool{New: func() any { return new(tally) }}

// count returns the histogram of bf16. It is valid until the next call.
func (t *tally) count(l *loops, bf16 []byte) *histogram {
	t.last, t.now = t.now, histogram{}
	whole := len(bf16) &^ 15
	l.count(t, bf16[:whole])
	t.now.add(bf16[whole:])
	return &t.now
}

// maxSeen is far more exponents than trained weights have. With so many, looking at the pairs of
// seen ones saves no time.
const maxSeen = 64

// countGo counts pairs and splits them up. After a unit with too many exponents it begins to learn
// again, because units share tallies.
func countGo(t *tally, bf16 []byte) {
	if len(t.seen) > maxSeen {
		t.seen = t.seen[:0]
	}
	pairsGo(&t.pairs, bf16)
	t.collect(uint64(len(bf16) / 4))
}

// add counts the exponents one by one.
func (h *histogram) add(bf16 []byte) {
	for ; len(bf16) > 0; bf16 = bf16[2:] {
		h[exponent(bf16)]++
	}
}

// collect moves nPairs pairs from the tables to the histogram. It starts with the pairs of seen
// exponents, which are almost always all of them.
func (t *tally) collect(nPairs uint64) {
	for _, s1 := range t.seen {
		for _, s0 := range t.seen {
			nPairs -= t.take(int(s1)<<8 | int(s0))
		}
	}
	if nPairs == 0 {
		return
	}
	for i := range 1 << 16 {
		t.take(i)
	}
	for s, n := range t.now {
		if n > 0 && !slices.Contains(t.seen, byte(s)) {
			t.seen = append(t.seen, byte(s))
		}
	}
}

// take moves one entry of the tables to the histogram.
func (t *tally) take(i int) uint64 {
	n := uint64(t.pairs[0][i]) + uint64(t.pairs[1][i])
	if n > 0 {
		t.now[i&0xff] += n
		t.now[i>>8] += n
		t.pairs[0][i], t.pairs[1][i] = 0, 0
	}
	return n
}
