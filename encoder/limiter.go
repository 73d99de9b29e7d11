package encoder

import (
	"cmp"
	"slices"
)

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
		var chosen []int
		chosen, tied = smallest(original, k)
		demoted := slices.Clone(original)
		for _, i := range chosen {
			demoted[i].count = 1
		}
		tree = buildTree(demoted)
	}
	b := newCodebook(tree.codes())
	b.tied = tied
	return b
}

// smallest returns the positions in list of k entries with the smallest counts, 2 <= k < len(list),
// as numpy's scalar argpartition chooses them. tied reports that other choices exist: the k-th
// smallest count and the next are equal and not 1 (docs/format.md §5). Setting 1 to 1 changes
// nothing.
func smallest(list []entry, k int) (chosen []int, tied bool) {
	sorted := slices.SortedFunc(slices.Values(list),
		func(a, b entry) int { return cmp.Compare(a.count, b.count) })
	tied = sorted[k-1].count == sorted[k].count && sorted[k].count != 1
	p := &partition{list: list, at: make([]int, len(list))}
	for i := range p.at {
		p.at[i] = i
	}
	if k == 2 {
		p.selectFirst(3)
	} else {
		p.introselect(k)
	}
	return p.at[:k], tied
}

// partition is numpy's scalar selection (docs/format.md §5.1). at is a permutation of the positions
// in list. Selection swaps them until the smallest counts are in front. It orders ties as numpy
// does, so the bytes of an ambiguous limiter are reproducible.
type partition struct {
	list []entry
	at   []int
}

func (p *partition) count(i int) uint64 { return p.list[p.at[i]].count }

func (p *partition) swap(i, j int) { p.at[i], p.at[j] = p.at[j], p.at[i] }

// order swaps the entries at i and j if the count at i is smaller.
func (p *partition) order(i, j int) {
	if p.count(i) < p.count(j) {
		p.swap(i, j)
	}
}

// selectFirst moves the n smallest to the front by plain selection.
func (p *partition) selectFirst(n int) {
	for i := range n {
		least := i
		for j := i + 1; j < len(p.at); j++ {
			if p.count(j) < p.count(least) {
				least = j
			}
		}
		p.swap(i, least)
	}
}

// introselect moves the k smallest to the front by quickselect with a median-of-three pivot.
func (p *partition) introselect(k int) {
	low, high := 0, len(p.at)-1
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
func (p *partition) split(low, high int) (i, j int) {
	mid := low + (high-low)/2
	p.order(high, mid)
	p.order(high, low)
	p.order(low, mid)
	p.swap(mid, low+1)
	pivot := p.count(low)
	i, j = low+1, high
	for {
		for i++; p.count(i) < pivot; i++ {
		}
		for j--; p.count(j) > pivot; j-- {
		}
		if j < i {
			break
		}
		p.swap(i, j)
	}
	p.swap(low, j)
	return i, j
}
