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

// decode decodes the first n of b.chunks, at most v.lanes. For each, it returns where the chunk
// contradicts itself, its stored gaps, or its number of weights, or nil.
func (u *Unit) decode(v *variant, b *block, n int) (faults [maxLanes]*StructureError) {
	whole := 0 // the last chunk always comes after the others
	for i := range n {
		if d := &b.chunks[i]; !d.last {
			b.lanes[i].begin(&b.codes[i], d.stream, d.start())
			whole++
		} else if d.n > 0 {
			faults[i] = u.decodeAsKernel(&b.codes[i], d)
		}
	}
	if whole == v.lanes {
		v.decodeLanes(u.tables, u.multi, b.lanes[:whole])
	}
	for i := range whole {
		c, d := &b.codes[i], &b.chunks[i]
		if b.lanes[i].finish(u.tables, u.multi) && c.agrees(d) {
			continue
		}
		if faults[i] = u.decodeAsKernel(c, d); faults[i] == nil {
			panic("verify: internal error: the decoders disagree")
		}
	}
	return faults
}

// agrees reports whether a decoded chunk has the stored gaps and number of weights, and ends where
// the next chunk starts. It isn't for the last chunk.
func (c *codes) agrees(d *chunkData) bool {
	return c.n == d.n && d.startsWell() && c.hasGaps(d.gaps) &&
		c.end-chunkBits == gapAt(d.gaps, chunkWindows)
}

// decodeAsKernel decodes chunk d as a GPU does (docs/format.md §9): every window starts at its own
// gap. It returns the first place where the chunk contradicts itself, or nil. That place may be the
// first gap of the next chunk.
func (u *Unit) decodeAsKernel(c *codes, d *chunkData) *StructureError {
	c.reset()
	if !d.startsWell() {
		return badAt(NameGaps, 0, "%d, but the first code starts at 0", d.start())
	}
	limit := maxCodes
	if d.last {
		limit = d.n // the bits after these aren't codes
	}
	for w := 0; w < chunkWindows && c.n < limit; w++ {
		pos := w*windowBits + gapAt(d.gaps, w)
		if w > 0 && pos != c.end {
			return d.badGap(c, w)
		}
		if !c.decodeMore(u.tables, d.stream, pos, (w+1)*windowBits, limit) {
			return badAt(NameEncodedExponent, int64(d.index)*chunkBits+int64(c.end),
				"no code; a GPU would hang")
		}
	}
	switch {
	case c.n != d.n:
		return badAt(NameOutputPositions, int64(d.index)+1, "chunk of %d weights has %d codes",
			d.n, c.n)
	case d.last:
		return u.checkEnd(c, d)
	case c.end-chunkBits != gapAt(d.gaps, chunkWindows):
		return d.badGap(c, chunkWindows)
	}
	return nil
}

// badGap reports a window that doesn't start where the code before it ends.
func (d *chunkData) badGap(c *codes, w int) *StructureError {
	return badAt(NameGaps, int64(d.index)*chunkWindows+int64(w),
		"%d, but the previous code ends at bit %d of the window", gapAt(d.gaps, w),
		c.end-w*windowBits)
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
		return badAt(NameEncodedExponent, end, "the codes end here, but the array has %d bytes",
			u.nStream)
	}
	entries := d.index + 2
	if end%8 != 0 && c.end >= chunkBits {
		entries++
	}
	if entries != u.nEntries {
		return badArray(NameOutputPositions, "%d entries; this stream has %d", u.nEntries, entries)
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
				return badAt(NameEncodedExponent, int64(d.index)*chunkBits+int64(pos),
					"a GPU would hang on the bits after the last code")
			}
			pos += int(nBits)
		}
	}
	return nil
}
