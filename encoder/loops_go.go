package encoder

import "encoding/binary"

// goLoops is the variant for every platform.
var goLoops = loops{
	name: "go", count: countGo, split: splitGo,
	append16: append16Go, append8: append8Go,
	gaps: packGaps,
}

// Masks for four BF16 weights in 8 bytes.
const (
	lowBytes      = 0x00ff00ff00ff00ff // the exponents, after a shift by 7
	signMantissas = 0x807f807f807f807f
)

func pairsGo(p *pairCounts, bf16 []byte) {
	for i := 0; i < len(bf16)-15; i += 16 {
		x := binary.LittleEndian.Uint64(bf16[i:i+8]) >> 7 & lowBytes
		y := binary.LittleEndian.Uint64(bf16[i+8:i+16]) >> 7 & lowBytes
		x |= x >> 8
		y |= y >> 8
		p[0][uint16(x)]++
		p[1][uint16(x>>32)]++
		p[0][uint16(y)]++
		p[1][uint16(y>>32)]++
	}
}

// lanesGo counts exponents, a multiple of 8. Neighbors go to different tables, so that equal ones
// don't wait for each other.
func lanesGo(lanes *[8][256]uint32, bf16 []byte) {
	for i := 0; i < len(bf16)-15; i += 16 {
		x := binary.LittleEndian.Uint64(bf16[i:i+8]) >> 7
		y := binary.LittleEndian.Uint64(bf16[i+8:i+16]) >> 7
		lanes[0][uint8(x)]++
		lanes[1][uint8(x>>16)]++
		lanes[2][uint8(x>>32)]++
		lanes[3][uint8(x>>48)]++
		lanes[4][uint8(y)]++
		lanes[5][uint8(y>>16)]++
		lanes[6][uint8(y>>32)]++
		lanes[7][uint8(y>>48)]++
	}
}

func splitGo(dst *[stripElems]byte, bf16 *[2 * stripElems]byte, idx *strip, width uint) {
	mask, mul := pairMask(width), pairMul(width)
	for i := 0; i < stripElems; i += 4 {
		x := binary.LittleEndian.Uint64(bf16[2*i : 2*i+8])
		binary.LittleEndian.PutUint64(idx[2*i:2*i+8], x>>7&mask*mul)
		x &= signMantissas
		x = (x | x>>8) & lowBytes
		x |= x >> 8
		binary.LittleEndian.PutUint32(dst[i:i+4], uint32(x)&0xffff|uint32(x>>16)&0xffff0000)
	}
}

// append16Go is the hot loop of pass 2 for typical weights: 16 elements of 2.6 bits each almost
// always fit one append.
func append16Go(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch, _ *byte) int {
	code, mark, n, at := w.code, w.mark, uint64(w.n), 0
	i := 0
	for ; i < len(idx)-31; i += 32 {
		in := idx[i : i+32]
		a, b := uint16(in[2])|uint16(in[3])<<8, uint16(in[6])|uint16(in[7])<<8
		n1, n2 := uint64(t.nBits[b]), uint64(t.nBits[a])
		hi := t.words[a]<<(n1&63) | t.words[b]
		nh := n1 + n2
		a, b = uint16(in[10])|uint16(in[11])<<8, uint16(in[14])|uint16(in[15])<<8
		n1, n2 = uint64(t.nBits[b]), uint64(t.nBits[a])
		w1 := t.words[a]<<(n1&63) | t.words[b]
		n1 += n2
		hi = hi<<(n1&63) | w1
		nh += n1
		a, b = uint16(in[18])|uint16(in[19])<<8, uint16(in[22])|uint16(in[23])<<8
		n1, n2 = uint64(t.nBits[b]), uint64(t.nBits[a])
		lo := t.words[a]<<(n1&63) | t.words[b]
		nl := n1 + n2
		a, b = uint16(in[26])|uint16(in[27])<<8, uint16(in[30])|uint16(in[31])<<8
		n1, n2 = uint64(t.nBits[b]), uint64(t.nBits[a])
		w1 = t.words[a]<<(n1&63) | t.words[b]
		n1 += n2
		lo = lo<<(n1&63) | w1
		nl += n1
		if ((nh+31)|(nl+31)|(nh+nl+7))&^63 != 0 { // nh > 32, nl > 32 or the sum > 56
			break
		}
		code = (code<<(nh&63)|hi&0xffffffff)<<(nl&63) | lo&0xffffffff
		mark = (mark<<(nh&63)|hi>>32)<<(nl&63) | lo>>32
		n += nh + nl
		k := at & (2*stripElems - 1)
		binary.BigEndian.PutUint64(coded[k:k+8], code<<(-n&63))
		binary.BigEndian.PutUint64(marks[k:k+8], mark<<(-n&63))
		at += int(n / 8)
		n %= 8
	}
	w.code, w.mark, w.n, w.at = code, mark, uint(n), w.at+at
	return i / 32
}

// append8Go is append16Go for half as many elements. It serves wide distributions.
func append8Go(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch, _ *byte) int {
	code, mark, n, at := w.code, w.mark, uint64(w.n), 0
	i := 0
	for ; i < len(idx)-15; i += 16 {
		in := idx[i : i+16]
		a, b := uint16(in[2])|uint16(in[3])<<8, uint16(in[6])|uint16(in[7])<<8
		n1, n2 := uint64(t.nBits[b]), uint64(t.nBits[a])
		hi := t.words[a]<<(n1&63) | t.words[b]
		nh := n1 + n2
		a, b = uint16(in[10])|uint16(in[11])<<8, uint16(in[14])|uint16(in[15])<<8
		n1, n2 = uint64(t.nBits[b]), uint64(t.nBits[a])
		lo := t.words[a]<<(n1&63) | t.words[b]
		nl := n1 + n2
		if ((nh+31)|(nl+31)|(nh+nl+7))&^63 != 0 { // nh > 32, nl > 32 or the sum > 56
			break
		}
		code = (code<<(nh&63)|hi&0xffffffff)<<(nl&63) | lo&0xffffffff
		mark = (mark<<(nh&63)|hi>>32)<<(nl&63) | lo>>32
		n += nh + nl
		k := at & (2*stripElems - 1)
		binary.BigEndian.PutUint64(coded[k:k+8], code<<(-n&63))
		binary.BigEndian.PutUint64(marks[k:k+8], mark<<(-n&63))
		at += int(n / 8)
		n %= 8
	}
	w.code, w.mark, w.n, w.at = code, mark, uint(n), w.at+at
	return i / 16
}
