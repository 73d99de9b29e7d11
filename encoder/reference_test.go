package encoder

import "encoding/binary"

// reference is the plain serial encoder that the tests compare with: docs/format.md §2 and §7 as
// written, one bit at a time. It shares only the codebook.
type reference struct {
	coded     []byte
	t         int
	gaps      []byte
	positions []uint32
}

func (r *reference) mark(i int) {
	if r.t/64 >= len(r.gaps) {
		r.gaps = append(r.gaps, byte(r.t%64))
	}
	if r.t/32768 >= len(r.positions) {
		r.positions = append(r.positions, uint32(i))
	}
}

func (r *reference) bit(b byte) {
	if r.t%8 == 0 {
		r.coded = append(r.coded, 0)
	}
	r.coded[r.t/8] |= b << (7 - r.t%8)
	r.t++
}

// packed writes the gaps bit by bit, 512 per chunk.
func (r *reference) packed() []byte {
	nChunks := (len(r.coded) + 4095) / 4096
	out := make([]byte, nChunks*320)
	for w, g := range r.gaps {
		for b := range 5 {
			if g>>(4-b)&1 != 0 {
				out[(5*w+b)/8] |= 0x80 >> ((5*w + b) % 8)
			}
		}
	}
	return out
}

// encodeReference encodes bf16 with the given code.
func encodeReference(book *codebook, sizes []int64, bf16 []byte) *Encoded {
	var r reference
	e := &Encoded{SignMantissa: []byte{}, SplitPositions: []int64{}}
	n := len(bf16) / 2
	for i := range n {
		w := binary.LittleEndian.Uint16(bf16[2*i:])
		s := w >> 7 & 0xff
		e.SignMantissa = append(e.SignMantissa, byte(w>>8&0x80|w&0x7f))
		r.mark(i)
		for b := int(book.nBits[s]) - 1; b >= 0; b-- {
			r.bit(byte(book.bits[s] >> b & 1))
		}
	}
	if r.t%8 != 0 {
		r.mark(n)
		for k := 0; r.t%8 != 0; k++ {
			var b byte
			if k < book.eof.n {
				b = byte(book.eof.bits >> (book.eof.n - 1 - k) & 1)
			}
			r.bit(b)
		}
	}
	r.positions = append(r.positions, uint32(n))
	e.EncodedExponent, e.Gaps = r.coded, r.packed()
	e.OutputPositions = littleEndian(r.positions)
	e.LUTs, _ = book.luts()
	var sum int64
	for _, s := range sizes[:len(sizes)-1] {
		sum += s
		e.SplitPositions = append(e.SplitPositions, sum)
	}
	return e
}

// signMantissa returns the stored byte next to the exponent (docs/format.md §2).
func signMantissa(bf16 []byte) byte { return bf16[1]&0x80 | bf16[0]&0x7f }
