package verify

import (
	"encoding/binary"
	"math/bits"
)

// storeAhead is how far behind the last exponent a group may store: the range of its 8-bit index, which
// saves the bounds checks, and one word.
const storeAhead = 1<<8 + 8

// nLanes is how many chunks are decoded in turns.
const nLanes = 4

// lane is the state of decoding one chunk with a multiTable.
type lane struct {
	stream *chunkStream
	codes  *codes
	pos    uint   // bit in the chunk
	n      uint   // codes so far
	carry  uint64 // code starts from the start of pos's byte to pos, left-aligned
}

// begin sets a lane to the first code of a chunk.
func (l *lane) begin(c *codes, stream *chunkStream, start int) {
	*l = lane{stream: stream, codes: c, pos: uint(start)}
	clear(c.starts[:windowBits/8])
	clear(c.starts[chunkBytes:])
}

// group does as many lookups as one 64-bit load serves: 5 of 11 bits, when up to 7 are lost to
// alignment. It reports whether the last one found a code.
//
// The bits that the shifts free at the bottom of the register take the code starts of what was
// shifted out, so that one shift serves both. sum adds up the tops of the entries.
func (l *lane) group(m *multiTable) bool {
	c, at := l.codes, l.pos/8
	out := (*[storeAhead]uint8)(c.exponents[l.n : l.n+storeAhead : l.n+storeAhead])
	reg := binary.BigEndian.Uint64(l.stream[at:at+8:at+8]) << (l.pos % 8)
	reg, sum := m.step(out, reg, 0)
	reg, sum = m.step(out, reg, sum)
	reg, sum = m.step(out, reg, sum)
	reg, sum = m.step(out, reg, sum)
	reg, last := m.step(out, reg, sum)

	nBits := uint(last) % 256
	starts := l.carry | reg<<1<<((63-nBits)%64)>>(l.pos%8)
	binary.BigEndian.PutUint64(c.starts[at:at+8:at+8], starts)
	l.pos += nBits
	l.n += uint(last >> multiCountShift)
	l.carry = starts << ((l.pos/8 - at) * 8 % 64)
	return last != sum
}

// step does one lookup.
func (m *multiTable) step(out *[storeAhead]uint8, reg, sum uint64) (uint64, uint64) {
	i := reg >> (64 - multiBits)
	e := m.entry[i]
	n := int(uint8(sum >> multiCountShift))
	binary.LittleEndian.PutUint64(out[n:n+8], e)
	top := e >> multiTopShift
	return reg<<(top%64) | uint64(m.starts[i]), sum + top
}

// one decodes a single code of up to 32 bits.
func (l *lane) one(t *tables) bool {
	c, at := l.codes, l.pos/8
	symbol, nBits := t.next(peek(l.stream[:], int(l.pos)))
	if nBits == 0 {
		return false
	}
	c.exponents[l.n] = symbol
	starts := l.carry | 1<<63>>(l.pos%8)
	binary.BigEndian.PutUint64(c.starts[at:], starts)
	l.pos += uint(nBits)
	l.n++
	l.carry = starts << ((l.pos/8 - at) * 8 % 64)
	return true
}

// advance decodes some codes. It reports false when it met bits that are no code.
func (l *lane) advance(t *tables, m *multiTable) bool {
	return l.group(m) || l.pos >= chunkBits || l.one(t)
}

// finish decodes the rest of a chunk and sums up. Codes that start behind it belong to the next chunk.
func (l *lane) finish(t *tables, m *multiTable) bool {
	for l.pos < chunkBits {
		if !l.advance(t, m) {
			return false
		}
	}
	c := l.codes
	over := c.window(chunkWindows)
	c.n, c.end = int(l.n)-bits.OnesCount64(over), int(l.pos)
	if over != 0 {
		c.end = chunkBits + bits.LeadingZeros64(over)
	}
	return true
}

// decodeLanes decodes chunks in turns: a lookup waits for the one before it, and several chunks at
// once keep the processor busy meanwhile.
func decodeLanes(t *tables, m *multiTable, lanes []lane) {
	for len(lanes) > 0 {
		for i := range lanes {
			l := &lanes[i]
			if l.pos >= chunkBits || !l.advance(t, m) {
				return
			}
		}
	}
}
