package verify

import (
	"encoding/binary"
	"math/bits"
)

// maxLanes is the largest number of chunks that any variant decodes in turns. Each lookup waits for
// the previous one in its chunk; the other chunks keep the processor busy in the meantime.
const maxLanes = 4

// storeAhead is how far past the last exponent a lookup may store: the range of its 8-bit index,
// which saves the bounds checks, and one word.
const storeAhead = 1<<8 + 8

// lane is the state of decoding one chunk with a multiTable.
type lane struct {
	stream *chunkStream
	codes  *codes
	pos    uint   // bit in the chunk
	n      uint   // codes so far
	carry  uint64 // code starts from the beginning of pos's byte up to pos, left-aligned
}

// begin sets a lane to the first code of a chunk.
func (l *lane) begin(c *codes, stream *chunkStream, start int) {
	*l = lane{stream: stream, codes: c, pos: uint(start)}
	clear(c.starts[:windowBits/8])
	clear(c.starts[chunkBytes:])
}

// fetch returns at least 57 bits from bit pos on, left-aligned.
func (s *chunkStream) fetch(pos uint) uint64 {
	at := pos / 8
	return binary.BigEndian.Uint64(s[at:at+8:at+8]) << (pos % 8)
}

// out returns where to store exponents from the n-th on.
func (c *codes) out(n uint) *[storeAhead]uint8 {
	return (*[storeAhead]uint8)(c.exponents[n : n+storeAhead : n+storeAhead])
}

// step does one lookup, for the top bits of reg. Its shift also frees bits at the bottom of reg;
// they take the code starts of the bits shifted out. sum adds up the tops of the entries: the
// number of bits in its low byte, the number of codes above.
func (m *multiTable) step(out *[storeAhead]uint8, reg, sum uint64) (uint64, uint64) {
	i := reg >> (64 - multiBits)
	e := m.entry[i]
	n := int(uint8(sum >> multiCountShift))
	binary.LittleEndian.PutUint64(out[n:n+8], e)
	top := e >> multiTopShift
	return reg<<(top%64) | uint64(m.starts[i]), sum + top
}

// putStarts stores the code starts from the low bits of reg, as many as sum has bits, from bit pos
// on. It returns the position after them and the next carry.
func (c *codes) putStarts(pos uint, sum, reg, carry uint64) (uint, uint64) {
	at, nBits := pos/8, uint(uint8(sum))
	starts := carry | reg<<1<<((63-nBits)%64)>>(pos%8)
	binary.BigEndian.PutUint64(c.starts[at:at+8:at+8], starts)
	pos += nBits
	return pos, starts << ((pos/8 - at) * 8 % 64)
}

// group does all lookups that one fetch has bits for: 5 of 11 bits. It reports whether the last
// lookup found a code.
func (l *lane) group(m *multiTable) bool {
	out, reg := l.codes.out(l.n), l.stream.fetch(l.pos)
	reg, sum := m.step(out, reg, 0)
	reg, sum = m.step(out, reg, sum)
	reg, sum = m.step(out, reg, sum)
	reg, sum = m.step(out, reg, sum)
	reg, last := m.step(out, reg, sum)
	l.pos, l.carry = l.codes.putStarts(l.pos, last, reg, l.carry)
	l.n += uint(last >> multiCountShift)
	return last != sum
}

// one decodes a single code of up to 32 bits. It reports whether there was a code.
func (l *lane) one(t *tables) bool {
	symbol, nBits := t.next(peek(l.stream[:], int(l.pos)))
	if nBits == 0 {
		return false
	}
	l.codes.exponents[l.n] = symbol
	l.n++
	l.pos, l.carry = l.codes.putStarts(l.pos, uint64(nBits), 1<<(nBits-1), l.carry)
	return true
}

// decodeLanes decodes chunks in turns until one is complete or has bits that aren't a code. Without
// groups it leaves all to lane.finish.
func (v *variant) decodeLanes(t *tables, m *multiTable, lanes []lane) {
	for v.groups != nil {
		for i := range lanes {
			if lanes[i].pos >= chunkBits {
				return
			}
		}
		lost := v.groups(m, lanes)
		for i := range lanes {
			if l := &lanes[i]; lost>>i&1 != 0 && l.pos < chunkBits && !l.one(t) {
				return
			}
		}
	}
}

// finish decodes the rest of a chunk and counts its codes. Codes that start after the chunk belong
// to the next chunk. It returns false if it meets bits that aren't a code.
func (l *lane) finish(t *tables, m *multiTable) bool {
	for l.pos < chunkBits {
		if !l.group(m) && l.pos < chunkBits && !l.one(t) {
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
