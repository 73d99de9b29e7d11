package verify

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// This file is a plain encoder for tests, written from docs/format.md §2–§8, one bit at a time.

// code is one code: nBits bits, left-aligned in value.
type code struct {
	symbol uint8
	nBits  int
	value  uint32
}

// codebook is a Huffman code.
type codebook struct {
	codes []code // in the order of their values
	eof   code   // of the end symbol
}

// bookFor builds the code of a histogram (docs/format.md §4). It has no limiter (§5), so the code
// may be longer than 32 bits and useless.
func bookFor(hist *[256]int64) *codebook {
	type node struct {
		weight      int64
		head        int
		left, right *node
	}
	nodes := []*node{{weight: 1, head: -1}}
	for s, n := range hist {
		if n > 0 {
			nodes = append(nodes, &node{weight: n, head: s})
		}
	}
	less := func(a, b *node) bool { return a.weight < b.weight || a.weight == b.weight && a.head < b.head }
	takeSmallest := func() *node {
		best := 0
		for i := range nodes {
			if less(nodes[i], nodes[best]) {
				best = i
			}
		}
		n := nodes[best]
		nodes = slices.Delete(nodes, best, best+1)
		return n
	}
	for len(nodes) > 1 {
		a, b := takeSmallest(), takeSmallest()
		nodes = append(nodes, &node{weight: a.weight + b.weight, head: a.head, left: a, right: b})
	}
	var book codebook
	var walk func(n *node, value uint32, nBits int)
	walk = func(n *node, value uint32, nBits int) {
		switch {
		case n.left != nil:
			walk(n.left, value, nBits+1)
			walk(n.right, value|1<<31>>nBits, nBits+1)
		case n.head < 0:
			book.eof = code{nBits: nBits, value: value}
		default:
			book.codes = append(book.codes, code{uint8(n.head), nBits, value})
		}
	}
	walk(nodes[0], 0, 0)
	return &book
}

// luts returns the stored form of the tables (docs/format.md §6). If the end symbol comes first,
// there is none, and luts returns nil.
func (b *codebook) luts() []byte {
	if b.eof.value == 0 && b.eof.nBits <= 8 {
		return nil
	}
	prefixes := []string{""} // of the tables, in bits
	for _, c := range b.codes {
		for n := 8; n < c.nBits; n += 8 {
			prefixes = append(prefixes, c.bits()[:n])
		}
	}
	slices.SortFunc(prefixes, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	prefixes = slices.Compact(prefixes)
	var luts []byte
	running := uint8(0)
	for _, p := range prefixes {
		direct := map[int]uint8{} // by slot
		for _, c := range b.codes {
			if rest, ok := strings.CutPrefix(c.bits(), p); ok && rest != "" {
				slot := (rest + "0000000")[:8]
				v := c.symbol
				if len(rest) > 8 {
					v = uint8(256 - slices.Index(prefixes, p+slot))
				}
				n, _ := strconv.ParseUint(slot, 2, 8)
				direct[int(n)] = v
			}
		}
		luts = append(luts, filled(direct, &running)...)
	}
	last := make([]uint8, rowBytes)
	for _, c := range b.codes {
		last[c.symbol] = uint8(c.nBits)
	}
	return append(luts, last...)
}

func (c code) bits() string { return fmt.Sprintf("%032b", c.value)[:c.nBits] }

// filled gives empty slots the value of the slot before; the first ones get running.
func filled(direct map[int]uint8, running *uint8) (row []byte) {
	for s := range rowBytes {
		if v, ok := direct[s]; ok {
			*running = v
		}
		row = append(row, *running)
	}
	return row
}

// bitWriter appends bits and keeps gaps and positions (docs/format.md §7).
type bitWriter struct {
	stream    []byte
	nBits     int64
	gaps      []uint8
	positions []uint32
}

func (w *bitWriter) mark(i int) {
	if w.nBits/windowBits >= int64(len(w.gaps)) {
		w.gaps = append(w.gaps, uint8(w.nBits%windowBits))
	}
	if w.nBits/chunkBits >= int64(len(w.positions)) {
		w.positions = append(w.positions, uint32(i))
	}
}

func (w *bitWriter) add(value uint32, nBits int) {
	for i := range nBits {
		if w.nBits%8 == 0 {
			w.stream = append(w.stream, 0)
		}
		w.stream[w.nBits/8] |= uint8(value>>(31-i)&1) << (7 - w.nBits%8)
		w.nBits++
	}
}

// encodeWith encodes BF16 weights as one tensor with a given code.
func encodeWith(book *codebook, bf16 []byte) *stored {
	var bySymbol [256]code
	for _, c := range book.codes {
		bySymbol[c.symbol] = c
	}
	n := len(bf16) / 2
	var w bitWriter
	for i := range n {
		w.mark(i)
		c := bySymbol[uint8(binary.LittleEndian.Uint16(bf16[2*i:])>>7)]
		w.add(c.value, c.nBits)
	}
	if w.nBits%8 != 0 {
		w.mark(n)
		w.add(book.eof.value, int(-w.nBits&7))
	}
	w.positions = append(w.positions, uint32(n))
	s := &stored{luts: book.luts(), stream: w.stream, sm: signMantissa(bf16), positions: uint32Bytes(w.positions), source: bf16}
	s.gaps = packGaps(w.gaps, (len(w.stream)+chunkBytes-1)/chunkBytes)
	s.sizes = []int64{int64(n)}
	return s
}

func packGaps(gaps []uint8, nChunks int) []byte {
	packed := make([]byte, nChunks*gapBytes)
	for w, g := range gaps {
		for i := range gapBits {
			bit := w*gapBits + i
			packed[bit/8] |= g >> (gapBits - 1 - i) & 1 << (7 - bit%8)
		}
	}
	return packed
}

// encode encodes weights with the code of their own histogram.
func encode(bf16 []byte) *stored {
	var hist [256]int64
	for i := 0; i < len(bf16); i += 2 {
		hist[uint8(binary.LittleEndian.Uint16(bf16[i:])>>7)]++
	}
	return encodeWith(bookFor(&hist), bf16)
}

// split divides a unit into several tensors.
func (s *stored) splitAt(ends ...int64) {
	s.sizes, s.split = nil, nil
	last := int64(0)
	for _, end := range ends {
		s.split = binary.LittleEndian.AppendUint64(s.split, uint64(end))
		s.sizes = append(s.sizes, end-last)
		last = end
	}
	s.sizes = append(s.sizes, int64(len(s.source)/2)-last)
}

// normalWeights returns n weights like those of a trained layer: normal, with a spread that varies
// by row.
func normalWeights(n int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 2*n)
	sigma := 0.02
	for i := range n {
		if i%4096 == 0 {
			sigma = 0.02 * math.Exp(0.15*rng.NormFloat64())
		}
		w := math.Float32bits(float32(rng.NormFloat64() * sigma))
		binary.LittleEndian.PutUint16(b[2*i:], uint16(w>>16))
	}
	return b
}

// fibWeights returns weights with codes of every length up to nSymbols bits. The symbol counts grow
// like Fibonacci numbers; a shuffle spreads the symbols.
func fibWeights(nSymbols int, seed uint64) []byte {
	var symbols []uint8
	a, b := 1, 1
	for s := range nSymbols {
		symbols = append(symbols, slices.Repeat([]uint8{uint8(100 + s)}, a)...)
		a, b = b, a+b
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	rng.Shuffle(len(symbols), func(i, j int) { symbols[i], symbols[j] = symbols[j], symbols[i] })
	return fromSymbols(symbols, rng)
}

// fromSymbols adds random signs and mantissas to exponents.
func fromSymbols(symbols []uint8, rng *rand.Rand) []byte {
	b := make([]byte, 2*len(symbols))
	for i, s := range symbols {
		binary.LittleEndian.PutUint16(b[2*i:], weight(s, uint8(rng.Uint32())))
	}
	return b
}
