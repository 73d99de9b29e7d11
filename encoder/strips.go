package encoder

// pace is a way to code a strip.
type pace struct {
	elems, bits int     // elements of a group, and the bits they may have
	maxBits     float64 // largest average code length at which the pace is worth it
	low         bool    // needs the table's lowCodes
	loop        appendLoop
}

// pacesFor returns the paces for an average code length.
func (l *loops) pacesFor(t *pairTable, average float64) []pace {
	for i, p := range l.paces {
		if average <= p.maxBits && (!p.low || t.width == lowWidth) {
			return l.paces[i:]
		}
	}
	return nil
}

// strips splits and codes len(sm) elements, starting with element i.
func (c *blockCoder) strips(sm []byte, i int) error {
	nBits := c.u.offset[c.b+1] - c.u.offset[c.b]
	paces := c.u.loops.pacesFor(c.table, float64(nBits)/float64(len(sm)))
	for len(sm) > 0 {
		n := min(stripElems, len(sm))
		// At the end of a block, a strip is more than sm and c.bf16 hold. Their buffers have space.
		bf16 := c.bf16[2*i : 2*(i+stripElems)]
		c.u.loops.split((*[stripElems]byte)(sm[:stripElems]), (*[2 * stripElems]byte)(bf16),
			&c.idx, c.table.width)
		next, err := c.appendPairs(i, c.idx[:2*(n&^15)], paces)
		if err != nil {
			return err
		}
		sm, i = sm[n:], i+n
		if err := c.codes(next, i); err != nil {
			return err
		}
	}
	return nil
}

// appendPairs codes the elements from i on and returns the next element. idx holds their pair
// indices, for a multiple of 16 elements. Groups that are too long for the first pace, or close to
// the end of a chunk, go at the next one, and in the end one element at a time.
func (c *blockCoder) appendPairs(i int, idx []byte, paces []pace) (int, error) {
	if len(paces) == 0 {
		end := i + len(idx)/2
		return end, c.codes(i, end)
	}
	p, elems := paces[0], paces[0].elems
	for len(idx) > 0 {
		nGroups := max(0, min(len(idx)/(2*elems), c.room(p)))
		took := 0
		if nGroups > 0 {
			took = p.loop(&c.w, c.table, idx[:nGroups*2*elems],
				(*stretch)(c.coded[c.w.at:]), (*stretch)(c.marks[c.w.at:]))
		}
		i, idx = i+took*elems, idx[took*2*elems:]
		c.cross(i)
		if took == nGroups && nGroups > 0 {
			continue
		}
		var err error
		rest := min(2*elems, len(idx))
		if i, err = c.appendPairs(i, idx[:rest], paces[1:]); err != nil {
			return i, err
		}
		idx = idx[rest:]
	}
	return i, nil
}

// room returns how many groups are certain to fit before the next chunk begins or the buffers end.
func (c *blockCoder) room(p pace) int {
	return (min(c.next, 8*c.stop) - c.w.pos()) / p.bits
}
