package encoder

import "slices"

// entry is one line of a histogram (docs/format.md §3).
type entry struct {
	symbol int
	count  uint64
}

// entries lists the nonzero counts by ascending symbol.
func (h *histogram) entries() []entry {
	var list []entry
	for s, n := range h {
		if n > 0 {
			list = append(list, entry{s, n})
		}
	}
	return list
}

// buildCodebook makes the official code of a histogram that isn't empty. It starts with the Huffman
// code of docs/format.md §4. While any code, including EOF's, exceeds 32 bits, the limiter of §5
// sets the k smallest of the original counts to 1, for k = 2, 3, …
func buildCodebook(h *histogram) *codebook {
	original := h.entries()
	tree := buildTree(original)
	tied := false
	for k := 2; tree.maxBelow > maxCodeBits; k++ {
		demoted := partition(slices.Clone(original))
		demoted.choose(k)
		tied = demoted.tied(k)
		for i := range k {
			demoted[i].count = 1
		}
		tree = buildTree(demoted)
	}
	b := newCodebook(tree.appendCodes(nil, 0, 0))
	b.tied = tied
	return b
}

// partition is numpy's scalar argpartition (docs/format.md §5.1). It swaps entries until the
// smallest counts are in front. It orders ties as numpy does, so the bytes of an ambiguous limiter
// are reproducible.
type partition []entry

// choose moves k entries with the smallest counts to the front, 2 <= k < len(p), and the next
// smallest to position k.
func (p partition) choose(k int) {
	if k == 2 {
		p.selectFirst(3)
	} else {
		p.introselect(k)
	}
}

// tied reports that choose(k) had other choices: the k-th smallest count and the next are equal and
// not 1 (docs/format.md §5). Setting 1 to 1 changes nothing.
func (p partition) tied(k int) bool {
	next := p[k].count
	return next != 1 && slices.ContainsFunc(p[:k], func(e entry) bool { return e.count == next })
}

func (p partition) swap(i, j int) { p[i], p[j] = p[j], p[i] }

// order swaps the entries at i and j if the count at i is smaller.
func (p partition) order(i, j int) {
	if p[i].count < p[j].count {
		p.swap(i, j)
	}
}

// selectFirst moves the n smallest to the front by plain selection.
func (p partition) selectFirst(n int) {
	for i := range n {
		least := i
		for j := i + 1; j < len(p); j++ {
			if p[j].count < p[least].count {
				least = j
			}
		}
		p.swap(i, least)
	}
}

// introselect moves the k smallest to the front by quickselect with a median-of-three pivot.
func (p partition) introselect(k int) {
	low, high := 0, len(p)-1
	for low+1 < high {
		i, j := p.split(low, high)
		if j >= k {
			high = j - 1
		}
		if j <= k {
			low = i
		}
	}
	if high == low+1 {
		p.order(high, low)
	}
}

// split partitions low..high around the median of three and returns where the two scans met. The
// pivot is at j, every count before j is at most the pivot, and i is the first position after j
// that may hold more.
func (p partition) split(low, high int) (i, j int) {
	mid := low + (high-low)/2
	p.order(high, mid)
	p.order(high, low)
	p.order(low, mid)
	p.swap(mid, low+1)
	pivot := p[low].count
	i, j = low+1, high
	for {
		for i++; p[i].count < pivot; i++ {
		}
		for j--; p[j].count > pivot; j-- {
		}
		if j < i {
			break
		}
		p.swap(i, j)
	}
	p.swap(low, j)
	return i, j
}
