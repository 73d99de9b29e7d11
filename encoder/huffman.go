package encoder

import (
	"cmp"
	"slices"
)

// eof is the end symbol of the code, a leaf of every tree. Orderings count it as -1 (docs/format.md
// §1).
const eof = -1

// histogram counts the exponents of a unit or a block (docs/format.md §3).
type histogram [256]uint64

// code is one codeword: the low n bits of bits, most significant bit first.
type code struct {
	symbol int // eof or an exponent
	bits   uint64
	n      int
}

// codebook is a unit's Huffman code. order lists the leaves from left to right, the lexicographic
// order of their codes ("table order", docs/format.md §4). bits and nBits hold the same codes by
// symbol, zero where a symbol has none.
type codebook struct {
	order []code
	bits  [256]uint32
	nBits [256]uint8
	eof   code

	tied bool // the 32-bit limiter last chose among equal counts (§5)
}

// newCodebook takes the leaves of a finished tree in table order.
func newCodebook(order []code) *codebook {
	b := &codebook{order: order}
	for _, c := range order {
		if c.symbol == eof {
			b.eof = c
			continue
		}
		b.bits[c.symbol] = uint32(c.bits)
		b.nBits[c.symbol] = uint8(c.n)
	}
	return b
}

// node is an inner node or a leaf of the tree under construction. Its key is (weight, head), where
// head is the symbol of its leftmost leaf. The heads of the nodes in the queue differ, so their
// order is total.
type node struct {
	weight    uint64
	head      int
	zero, one *node // nil for a leaf
	maxBelow  int   // length of the longest path to a leaf
}

func byKey(a, b *node) int {
	return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.head, b.head))
}

// buildTree makes the Huffman tree of docs/format.md §4 from at least one entry. The leaves are the
// entries and EOF with weight 1. Until one node is left, the two nodes with the smallest keys are
// joined, the smallest as the 0 child.
func buildTree(entries []entry) *node {
	queue := []*node{{weight: 1, head: eof}}
	for _, e := range entries {
		queue = append(queue, &node{weight: e.count, head: e.symbol})
	}
	slices.SortFunc(queue, byKey)
	for len(queue) > 1 {
		zero, one := queue[0], queue[1]
		parent := &node{
			weight: zero.weight + one.weight, head: zero.head, zero: zero, one: one,
			maxBelow: 1 + max(zero.maxBelow, one.maxBelow),
		}
		queue = queue[2:]
		at, _ := slices.BinarySearchFunc(queue, parent, byKey)
		queue = slices.Insert(queue, at, parent)
	}
	return queue[0]
}

// appendCodes appends the leaves below n in table order, with their codes. bits and depth are those
// of n.
func (n *node) appendCodes(list []code, bits uint64, depth int) []code {
	if n.zero == nil {
		return append(list, code{symbol: n.head, bits: bits, n: depth})
	}
	list = n.zero.appendCodes(list, bits<<1, depth+1)
	return n.one.appendCodes(list, bits<<1|1, depth+1)
}
