package encoder

import "encoding/binary"

// goLoops is the variant for every platform.
var goLoops = loops{
	name: "go", count: countGo, split: splitGo, gaps: packGaps,
	paces: []pace{pace16(append16Go), pace8(append8Go)},
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
func append16Go(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) int {
	code, mark, n, at, i := w.code, w.mark, uint64(w.n), 0, 0
	for ; i < len(idx)-31; i += 32 {
		a, nA := t.four(idx[i : i+8])
		b, nB := t.four(idx[i+8 : i+16])
		c, nC := t.four(idx[i+16 : i+24])
		d, nD := t.four(idx[i+24 : i+32])
		if nA+nB > 32 || nC+nD > 32 || nA+nB+nC+nD > 56 {
			break
		}
		code, mark = joined(code, mark, a<<(nB&63)|b, nA+nB, c<<(nD&63)|d, nC+nD)
		at, n = store(at, n+nA+nB+nC+nD, code, mark, coded, marks)
	}
	w.code, w.mark, w.n, w.at = code, mark, uint(n), w.at+at
	return i / 32
}

// append8Go is append16Go for half as many elements. It serves wide distributions.
func append8Go(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) int {
	code, mark, n, at, i := w.code, w.mark, uint64(w.n), 0, 0
	for ; i < len(idx)-15; i += 16 {
		hi, nHi := t.four(idx[i : i+8])
		lo, nLo := t.four(idx[i+8 : i+16])
		if nHi > 32 || nLo > 32 || nHi+nLo > 56 {
			break
		}
		code, mark = joined(code, mark, hi, nHi, lo, nLo)
		at, n = store(at, n+nHi+nLo, code, mark, coded, marks)
	}
	w.code, w.mark, w.n, w.at = code, mark, uint(n), w.at+at
	return i / 16
}

// four returns the codes of four elements with their marks, as in pairTable.words, and how many
// bits they have.
func (t *pairTable) four(idx []byte) (word, nBits uint64) {
	a, b := binary.LittleEndian.Uint16(idx[2:]), binary.LittleEndian.Uint16(idx[6:])
	n := uint64(t.nBits[b])
	return t.words[a]<<(n&63) | t.words[b], uint64(t.nBits[a]) + n
}

// joined appends two words of a pair table to the ends of the streams.
func joined(code, mark, hi, nHi, lo, nLo uint64) (uint64, uint64) {
	return (code<<(nHi&63)|hi&0xffffffff)<<(nLo&63) | lo&0xffffffff,
		(mark<<(nHi&63)|hi>>32)<<(nLo&63) | lo>>32
}

// store writes the last n bits of the streams at byte at, and returns where the next store begins
// and how many bits it has to repeat.
func store(at int, n, code, mark uint64, coded, marks *stretch) (int, uint64) {
	k := at & (2*stripElems - 1)
	binary.BigEndian.PutUint64(coded[k:k+8], code<<(-n&63))
	binary.BigEndian.PutUint64(marks[k:k+8], mark<<(-n&63))
	return at + int(n/8), n % 8
}
