package verify

import "math/bits"

// chunkData is one chunk of a loaded block.
type chunkData struct {
	index  int  // in the unit
	n      int  // weights, by output_positions
	last   bool // no later chunk starts a code
	stream *chunkStream
	gaps   []byte // gaps, and 8 bytes starting with the next chunk's
	sm     []byte // [n]
	bf16   []byte // [2n]
}

// start returns the stored bit at which the chunk's first code starts.
func (d *chunkData) start() int { return gapAt(d.gaps, 0) }

// startsWell reports whether the chunk may start where it does: the unit's first code starts at bit
// 0.
func (d *chunkData) startsWell() bool { return d.index > 0 || d.start() == 0 }

// decode decodes the first n of b.chunks, at most v.lanes. It reports for each whether the stored
// gaps and the stored number of weights are right.
func (u *Unit) decode(v *variant, b *block, n int) (ok [maxLanes]bool) {
	whole := 0 // the last chunk always comes after the others
	for i := range n {
		if d := &b.chunks[i]; !d.last {
			b.lanes[i].begin(&b.codes[i], d.stream, d.start())
			whole++
		} else if d.n > 0 {
			ok[i] = u.decodeLast(&b.codes[i], d)
		}
	}
	if whole == v.lanes {
		v.decodeLanes(u.tables, u.multi, b.lanes[:whole])
	}
	for i := range whole {
		ok[i] = b.lanes[i].finish(u.tables, u.multi) && b.codes[i].agrees(&b.chunks[i])
	}
	return ok
}

// agrees reports whether a decoded chunk has the stored gaps and number of weights, and ends where
// the next chunk starts. It isn't for the last chunk.
func (c *codes) agrees(d *chunkData) bool {
	return c.n == d.n && d.startsWell() &&
		c.checkGaps(d.gaps, chunkWindows) == chunkWindows &&
		c.end-chunkBits == gapAt(d.gaps, chunkWindows)
}

// decodeLast decodes the last chunk that starts codes. It must have exactly d.n codes, followed by
// the end of the stream.
func (u *Unit) decodeLast(c *codes, d *chunkData) bool {
	ok := c.decodeSerial(u.tables, d.stream, d.start(), chunkBits, d.n)
	if !ok || c.n != d.n || !d.startsWell() {
		return false
	}
	nWindows := (c.lastStart() / windowBits) + 1
	return c.checkGaps(d.gaps, nWindows) == nWindows && u.checkEnd(c, d) == nil
}

// lastStart returns the bit where the last code of a chunk starts.
func (c *codes) lastStart() int {
	for w := chunkWindows; w >= 0; w-- {
		if s := c.window(w); s != 0 {
			return w*windowBits + 63 - bits.TrailingZeros64(s)
		}
	}
	return -1
}

// checkEnd checks what follows from the end of the coded stream (docs/format.md §7): the stream's
// length, the number of output positions, and that the bits after the last code can't make a GPU
// hang.
func (u *Unit) checkEnd(c *codes, d *chunkData) *StructureError {
	end := int64(d.index)*chunkBits + int64(c.end)
	if (end+7)/8 != u.nStream {
		return badAt(arrayEncodedExponent, end, "the codes end here, but the array has %d bytes",
			u.nStream)
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

// checkGarbage walks the bits after the last code that a GPU decodes but never writes: the rest of
// the window, and the next window, whose gap can point anywhere. Later windows hold only zeros,
// which parseTables has checked.
func (u *Unit) checkGarbage(c *codes, d *chunkData) *StructureError {
	w := c.lastStart()/windowBits + 1
	next := w*windowBits + gapAt(d.gaps, w)
	for _, span := range [][2]int{{c.end, w * windowBits}, {next, (w + 1) * windowBits}} {
		for pos := span[0]; pos < span[1]; {
			_, nBits := u.tables.next(peek(d.stream[:], pos))
			if nBits == 0 {
				return badAt(arrayEncodedExponent, int64(d.index)*chunkBits+int64(pos),
					"a GPU would hang on the bits after the last code")
			}
			pos += int(nBits)
		}
	}
	return nil
}
