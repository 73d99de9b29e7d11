package verify

import (
	"io"
	"math/bits"
)

// chunkOf gives the parts of block b that belong to its i-th chunk.
func (u *Unit) chunkOf(b *block, i int) chunkData {
	c := b.first + i
	base := u.positions[b.first]
	from, to := int(u.positions[c]-base), int(u.positions[c+1]-base)
	d := chunkData{
		index:  c,
		n:      to - from,
		last:   int64(u.positions[c+1]) == u.nElems,
		stream: (*chunkStream)(b.stream[i*chunkBytes:]),
		gaps:   b.gaps[i*gapBytes : (i+1)*gapBytes+8],
		sm:     b.sm[from:to],
		bf16:   b.bf16[2*from : 2*to],
	}
	return d
}

// chunkData is one chunk of a loaded block.
type chunkData struct {
	index  int  // in the unit
	n      int  // weights, by output_positions
	last   bool // no later chunk starts a code
	stream *chunkStream
	gaps   []byte // gaps, and 8 bytes that begin with the next chunk's
	sm     []byte // [n]
	bf16   []byte // [2n]
}

// start is the bit where the chunk's first code starts, as stored.
func (d *chunkData) start() int { return gapAt(d.gaps, 0) }

// startsWell says that the first chunk starts with its first bit.
func (d *chunkData) startsWell() bool { return d.index > 0 || d.start() == 0 }

// eachChunk decodes the chunks of a loaded block and calls use for each, in order. Where a chunk does
// not decode as its gaps and positions say, or use returns false, it finds out why. src is what the
// block's weights were read from, or nil.
func (u *Unit) eachChunk(b *block, src io.ReaderAt, use func(*codes, *chunkData) bool) error {
	for first := 0; first < b.n; first += nLanes {
		n := min(nLanes, b.n-first)
		for i := range n {
			b.chunks[i] = u.chunkOf(b, first+i)
		}
		ok := u.decode(b.chunks[:n], b.codes[:n])
		for i := range n {
			c, d := &b.codes[i], &b.chunks[i]
			if d.n > 0 && !(ok[i] && use(c, d)) {
				return u.diagnose(c, d, src)
			}
		}
	}
	return nil
}

// decode decodes neighbouring chunks and reports which of them have the gaps and the number of weights
// that are stored.
func (u *Unit) decode(chunks []chunkData, cs []codes) (ok [nLanes]bool) {
	var lanes [nLanes]lane
	n := 0
	for i := range chunks {
		if d := &chunks[i]; !d.last {
			lanes[n].begin(&cs[i], d.stream, d.start())
			n++
		} else if d.n > 0 {
			ok[i] = u.decodeLast(&cs[i], d)
		}
	}
	if n == nLanes {
		decodeTwo(u.tables, u.multi, &lanes[0], &lanes[1])
	}
	for i := range n { // the last chunk is never before another
		ok[i] = lanes[i].finish(u.tables, u.multi) && cs[i].agrees(&chunks[i])
	}
	return ok
}

// agrees reports whether a decoded chunk that is not the last has the stored gaps, the stored number
// of weights, and ends where the next chunk starts.
func (c *codes) agrees(d *chunkData) bool {
	return c.n == d.n && d.startsWell() &&
		c.checkGaps(d.gaps, chunkWindows) == chunkWindows &&
		c.end-chunkBits == gapAt(d.gaps, chunkWindows)
}

// decodeLast decodes the last chunk that starts codes: exactly d.n of them, and what follows must be
// the end of the stream.
func (u *Unit) decodeLast(c *codes, d *chunkData) bool {
	ok := c.decodeSerial(u.tables, d.stream, d.start(), chunkBits, d.n)
	if !ok || c.n != d.n || !d.startsWell() {
		return false
	}
	nWindows := (c.lastStart() / windowBits) + 1
	return c.checkGaps(d.gaps, nWindows) == nWindows && u.checkEnd(c, d) == nil
}

// lastStart is the bit where the last code of a chunk starts.
func (c *codes) lastStart() int {
	for w := chunkWindows; w >= 0; w-- {
		if s := c.window(w); s != 0 {
			return w*windowBits + 63 - bits.TrailingZeros64(s)
		}
	}
	return -1
}

// checkEnd judges what the end of the coded stream decides (docs/format.md §7): its length, the
// number of output positions, and that the bits behind it do not make a GPU hang.
func (u *Unit) checkEnd(c *codes, d *chunkData) *StructureError {
	end := int64(d.index)*chunkBits + int64(c.end)
	if (end+7)/8 != u.nStream {
		return badAt(arrayEncodedExponent, end, "the codes end here, the array after %d bytes", u.nStream)
	}
	entries := d.index + 2
	if end%8 != 0 && c.end >= chunkBits {
		entries++
	}
	if entries != u.nEntries {
		return badArray(arrayOutputPositions, "%d entries; this stream has %d", u.nEntries, entries)
	}
	return u.checkGarbage(c, d)
}

// checkGarbage walks what a GPU decodes, and never writes, behind the last code: the rest of its
// window, and the next window, into which the code may reach and whose gap can point anywhere.
// Later windows hold only zeros, which parseTables checked.
func (u *Unit) checkGarbage(c *codes, d *chunkData) *StructureError {
	w := c.lastStart()/windowBits + 1
	next := w*windowBits + gapAt(d.gaps, w)
	for _, span := range [][2]int{{c.end, w * windowBits}, {next, (w + 1) * windowBits}} {
		for pos := span[0]; pos < span[1]; {
			_, nBits := u.tables.next(peek(d.stream[:], pos))
			if nBits == 0 {
				return badAt(arrayEncodedExponent, int64(d.index)*chunkBits+int64(pos), "a GPU would hang on the bits behind the last code")
			}
			pos += int(nBits)
		}
	}
	return nil
}
