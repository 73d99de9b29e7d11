// Package plain encodes units as docs/format.md §2 to §8 say, one bit at a time, and makes weights.
// Only tests import it. It shares no code with package encoder.
package plain

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Unit is an encoded unit, with its input.
type Unit struct {
	Sizes []int64 // elements of each tensor

	Input, EncodedExponent, SignMantissa, OutputPositions, Gaps, SplitPositions []byte

	LUTs []byte // nil if the official functions make no tables
}

// Code is the code of a symbol, such as "0110". The end symbol is -1.
type Code struct {
	Symbol int
	Bits   string
}

// NewCode returns a code of the low nBits bits.
func NewCode(symbol, nBits int, bits uint64) Code {
	return Code{symbol, fmt.Sprintf("%0*b", nBits, bits)}
}

// CodesOf makes codes of a case's entries: symbol, length, bits.
func CodesOf(entries [][3]int64) []Code {
	var codes []Code
	for _, x := range entries {
		codes = append(codes, NewCode(int(x[0]), int(x[1]), uint64(x[2])))
	}
	return codes
}

// tree is a node of a Huffman tree. head is the symbol of its leftmost leaf.
type tree struct {
	weight    int64
	head      int
	zero, one *tree // nil for a leaf
}

// Codes builds the code of a histogram (docs/format.md §4), in the order of the codes. It has no
// limiter (§5), so codes may have more than 32 bits.
func Codes(hist *[256]int64) []Code {
	nodes := []*tree{{weight: 1, head: -1}}
	for s, n := range hist {
		if n > 0 {
			nodes = append(nodes, &tree{weight: n, head: s})
		}
	}
	for len(nodes) > 1 {
		slices.SortFunc(nodes, func(a, b *tree) int {
			return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.head, b.head))
		})
		zero, one := nodes[0], nodes[1]
		nodes = append(nodes[2:], &tree{zero.weight + one.weight, zero.head, zero, one})
	}
	return nodes[0].codes("")
}

func (n *tree) codes(bits string) []Code {
	if n.zero == nil {
		return []Code{{n.head, bits}}
	}
	return append(n.zero.codes(bits+"0"), n.one.codes(bits+"1")...)
}

// Tables returns luts for codes in order (docs/format.md §6), or nil if the end symbol comes first
// in the first table.
func Tables(codes []Code) []byte {
	prefixes := []string{""} // of the tables
	for _, c := range codes {
		for n := 8; n < len(c.Bits) && c.Symbol >= 0; n += 8 {
			prefixes = append(prefixes, c.Bits[:n])
		}
	}
	slices.SortFunc(prefixes, func(a, b string) int {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	})
	prefixes = slices.Compact(prefixes)
	var luts []byte
	running := uint8(0)
	for _, p := range prefixes {
		direct := direct(codes, prefixes, p)
		if _, ok := direct[0]; p == "" && !ok {
			return nil
		}
		luts = append(luts, Filled(direct, &running)...)
	}
	lengths := make([]byte, 256)
	for _, c := range codes {
		if c.Symbol >= 0 {
			lengths[c.Symbol] = uint8(len(c.Bits))
		}
	}
	return append(luts, lengths...)
}

// direct returns what the codes put into the table of a prefix, by slot.
func direct(codes []Code, prefixes []string, prefix string) map[int]uint8 {
	slots := map[int]uint8{}
	for _, c := range codes {
		rest, ok := strings.CutPrefix(c.Bits, prefix)
		if !ok || rest == "" || c.Symbol < 0 {
			continue
		}
		slot := (rest + "0000000")[:8]
		n, _ := strconv.ParseUint(slot, 2, 8)
		if slots[int(n)] = uint8(c.Symbol); len(rest) > 8 {
			slots[int(n)] = uint8(256 - slices.Index(prefixes, prefix+slot))
		}
	}
	return slots
}

// Filled returns a table. Empty slots have the value of the slot before; the first ones have
// running.
func Filled(direct map[int]uint8, running *uint8) (row []byte) {
	for s := range 256 {
		if v, ok := direct[s]; ok {
			*running = v
		}
		row = append(row, *running)
	}
	return row
}

// stream appends bits and keeps gaps and positions (docs/format.md §7).
type stream struct {
	coded     []byte
	nBits     int
	gaps      []uint8
	positions []uint32
}

func (s *stream) mark(i int) {
	if s.nBits/64 >= len(s.gaps) {
		s.gaps = append(s.gaps, uint8(s.nBits%64))
	}
	if s.nBits/32768 >= len(s.positions) {
		s.positions = append(s.positions, uint32(i))
	}
}

func (s *stream) add(bits string) {
	for i := range len(bits) {
		if s.nBits%8 == 0 {
			s.coded = append(s.coded, 0)
		}
		s.coded[s.nBits/8] |= (bits[i] - '0') << (7 - s.nBits%8)
		s.nBits++
	}
}

// packed returns the gaps bit by bit, 512 per chunk.
func (s *stream) packed() []byte {
	out := make([]byte, (len(s.coded)+4095)/4096*320)
	for w, g := range s.gaps {
		for i := range 5 {
			out[(5*w+i)/8] |= g >> (4 - i) & 1 << (7 - (5*w+i)%8)
		}
	}
	return out
}

// Encode encodes weights with any codes, in order. They need not be made for the weights.
func Encode(codes []Code, sizes []int64, bf16 []byte) Unit {
	var bySymbol [257]string // the end symbol comes first
	for _, c := range codes {
		bySymbol[c.Symbol+1] = c.Bits
	}
	n := len(bf16) / 2
	var s stream
	for i := range n {
		s.mark(i)
		s.add(bySymbol[1+int(binary.LittleEndian.Uint16(bf16[2*i:])>>7&0xff)])
	}
	if s.nBits%8 != 0 {
		s.mark(n)
		s.add((bySymbol[0] + "0000000")[:-s.nBits&7])
	}
	u := Unit{Sizes: sizes, Input: bf16, LUTs: Tables(codes), EncodedExponent: s.coded,
		SignMantissa: SignMantissa(bf16), Gaps: s.packed()}
	u.OutputPositions, _ = binary.Append(nil, binary.LittleEndian, append(s.positions, uint32(n)))
	sum := int64(0)
	for _, size := range sizes[:len(sizes)-1] {
		sum += size
		u.SplitPositions = binary.LittleEndian.AppendUint64(u.SplitPositions, uint64(sum))
	}
	return u
}

// SignMantissa splits weights (docs/format.md §2).
func SignMantissa(bf16 []byte) []byte {
	sm := make([]byte, len(bf16)/2)
	for i := range sm {
		sm[i] = bf16[2*i+1]&0x80 | bf16[2*i]&0x7f
	}
	return sm
}
