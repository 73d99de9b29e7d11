package verify

import "encoding/binary"

// readAhead is how many bytes after a chunk a decoder may read. A 64-bit load at the last bit needs
// 8.
const readAhead = 16

// maxCodes bounds the codes of a chunk: one per bit, plus one lookup group past the end.
const maxCodes = chunkBits + windowBits

// chunkStream is a chunk of the coded stream and the bytes after it.
type chunkStream [chunkBytes + readAhead]byte

// codes are the decoded codes of one chunk.
type codes struct {
	exponents [maxCodes + storeAhead]uint8 // symbols in order
	n         int                          // codes that start inside the chunk, at most the limit

	// starts has one bit for every bit of the chunk and of the codes that reach past it, most
	// significant first. The bit is set where a code starts. A window's gap is its number of
	// leading zeros (docs/format.md §7).
	starts [chunkBytes + 2*windowBits/8]uint8

	end int // bit after the last code, counted from the start of the chunk
}

// reset removes all codes.
func (c *codes) reset() {
	clear(c.starts[:])
	c.n, c.end = 0, 0
}

// decodeMore adds codes of a chunk to c, one at a time, starting at bit pos and before bit end, until
// c has limit codes. It reports whether every lookup found a code. c.end is where it stopped.
func (c *codes) decodeMore(t *tables, stream *chunkStream, pos, end, limit int) bool {
	for pos < end && c.n < limit {
		symbol, nBits := t.next(peek(stream[:], pos))
		if nBits == 0 {
			c.end = pos
			return false
		}
		c.exponents[c.n] = symbol
		c.n++
		c.starts[pos/8] |= 0x80 >> (pos % 8)
		pos += int(nBits)
	}
	c.end = pos
	return true
}

// window returns the code starts in window w.
func (c *codes) window(w int) uint64 {
	return binary.BigEndian.Uint64(c.starts[w*windowBits/8:])
}

// peek returns the 32 bits from bit pos on.
func peek(stream []byte, pos int) uint32 {
	return uint32(binary.BigEndian.Uint64(stream[pos/8:]) << (pos % 8) >> 32)
}

// hasGaps reports whether the stored gaps of a chunk are those of the code starts in c. A code must
// start in each window: then shifting by the gap leaves only that start. gaps starts at the chunk and
// must have 8 bytes to spare.
func (c *codes) hasGaps(gaps []byte) bool {
	diff := uint64(0)
	for w := 0; w < chunkWindows; w += 8 {
		packed := binary.BigEndian.Uint64(gaps[w/8*gapBits:])
		for i := range 8 {
			gap := packed << (gapBits * i) >> (64 - gapBits)
			diff |= c.window(w+i)>>(^gap%64) ^ 1
		}
	}
	return diff == 0
}

// gapAt returns the stored gap of window w. gaps must have one byte more than the gap needs.
func gapAt(gaps []byte, w int) int {
	bit := w * gapBits
	two := binary.BigEndian.Uint16(gaps[bit/8:])
	return int(two>>(16-gapBits-bit%8)) & (1<<gapBits - 1)
}
