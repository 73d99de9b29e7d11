package encoder

import (
	"cmp"
	"slices"
)

// eof is the end symbol of the code: a leaf of every tree. In orderings it counts as -1,
// docs/format.md §1.
const eof = -1

// histogram counts the exponents of a unit or a block, docs/format.md §3.
type histogram [256]uint64

// code is one codeword: the low n bits of bits, first bit most significant.
type code struct {
	symbol int // eof or an exponent
	bits   uint64
	n      int
}

// codebook is a unit's Huffman code. order lists the leaves from left to right, which is the
// lexicographic order of their codes ("table order", docs/format.md §4); the arrays hold the same
// by symbol, zero where absent.
type codebook struct {
	order []code
	bits  [256]uint32
	nBits [256]uint8
	eof   code

	tied bool // the last choice of the 32-bit limiter was among equal counts, §5
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
// head is the symbol of its leftmost leaf; the heads of the nodes in the queue differ, so the order
// of keys is total.
type node struct {
	weight    uint64
	head      int
	zero, one *node // nil for a leaf
	maxBelow  int   // length of the longest path down to a leaf
}

func byKey(a, b *node) int {
	return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.head, b.head))
}

// buildTree makes the Huffman tree of docs/format.md §4 from at least one entry: EOF, of weight 1,
// and each entry are leaves; the two nodes with the smallest keys are joined, the smallest as the 0
// child, until one node is left.
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

// codes lists the leaves of the tree in table order with their paths.
func (n *node) codes() []code { return n.appendCodes(nil, 0, 0) }

func (n *node) appendCodes(list []code, bits uint64, depth int) []code {
	if n.zero == nil {
		return append(list, code{symbol: n.head, bits: bits, n: depth})
	}
	list = n.zero.appendCodes(list, bits<<1, depth+1)
	return n.one.appendCodes(list, bits<<1|1, depth+1)
}
