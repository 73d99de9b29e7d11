package encoder

import "encoding/binary"

// decodeReference decodes a unit from its stored tensors, window by window as docs/format.md §9
// says, one bit at a time. It doesn't check them.
func decodeReference(e *Encoded) []byte {
	n := len(e.SignMantissa)
	out := make([]byte, 0, 2*n)
	for w := 0; 8*w < len(e.EncodedExponent) && len(out) < 2*n; w++ {
		for at := gapAt(e.Gaps, w); at < 64 && len(out) < 2*n; {
			symbol, nBits := lookUp(e.LUTs, e.EncodedExponent, 64*w+at)
			sm := e.SignMantissa[len(out)/2]
			out = binary.LittleEndian.AppendUint16(out, uint16(sm&0x80)<<8|uint16(symbol)<<7|uint16(sm&0x7f))
			at += nBits
		}
	}
	return out
}

// bitsAt returns n bits of p, zeros beyond its end.
func bitsAt(p []byte, at, n int) int {
	v := 0
	for i := at; i < at+n; i++ {
		v <<= 1
		if i/8 < len(p) {
			v |= int(p[i/8] >> (7 - i%8) & 1)
		}
	}
	return v
}

func gapAt(gaps []byte, w int) int { return bitsAt(gaps, 5*w, 5) }

// lookUp walks the tables.
func lookUp(luts, coded []byte, at int) (symbol byte, nBits int) {
	row := 0
	for level := range 4 {
		symbol = luts[lutSlots*row+bitsAt(coded, at+8*level, 8)]
		if symbol < firstJump {
			break
		}
		row = lutSlots - int(symbol)
	}
	return symbol, int(luts[len(luts)-lutSlots+int(symbol)])
}
