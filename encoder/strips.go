package encoder

// pace is a way to code a strip.
type pace struct {
	elems, bits int     // elements of a group, and the bits they may have
	maxBits     float64 // largest average code length at which the pace is worth it
	low         bool    // needs the table's lowCodes
	loop        func(*loops) appendLoop
	slower      *pace // for groups with too many bits; nil: one element at a time
}

var (
	pacePairs = pace{8, 56, 5.7, false, func(l *loops) appendLoop { return l.append8 }, nil}
	paceFast  = pace{16, 56, 3.1, false, func(l *loops) appendLoop { return l.append16 },
		&pacePairs}
	pace64  = pace{64, 512, 6.2, true, func(l *loops) appendLoop { return l.append64 }, &paceFast}
	pace128 = pace{128, 512, 3.3, true, func(l *loops) appendLoop { return l.append128 }, &pace64}
)

// paceFor returns the pace for an average code length; nil means one element at a time.
func paceFor(l *loops, t *pairTable, average float64) *pace {
	for _, p := range []*pace{&pace128, &pace64, &paceFast, &pacePairs} {
		if average <= p.maxBits && p.loop(l) != nil && (!p.low || t.width == lowWidth) {
			return p
		}
	}
	return nil
}

// strips splits and codes len(sm) elements, starting with element i.
func (c *blockCoder) strips(sm []byte, i int) error {
	p := paceFor(c.u.loops, c.table, float64(c.u.offset[c.b+1]-c.u.offset[c.b])/float64(len(sm)))
	for len(sm) > 0 {
		n := min(stripElems, len(sm))
		// At the end of a block, a strip is more than sm and c.bf16 hold. Their buffers have space.
		bf16 := c.bf16[2*i : 2*(i+stripElems)]
		c.u.loops.split((*[stripElems]byte)(sm[:stripElems]), (*[2 * stripElems]byte)(bf16),
			&c.idx, c.table.width)
		next, err := c.appendPairs(i, c.idx[:2*(n&^15)], p)
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
// indices, for a multiple of 16 elements. Groups that are too long for the pace, or close to the
// end of a chunk, go at the slower pace.
func (c *blockCoder) appendPairs(i int, idx []byte, p *pace) (int, error) {
	if p == nil {
		end := i + len(idx)/2
		return end, c.codes(i, end)
	}
	elems := p.elems
	for len(idx) > 0 {
		nGroups := max(0, min(len(idx)/(2*elems), c.room(p)))
		took := 0
		if nGroups > 0 {
			took = p.loop(c.u.loops)(&c.w, c.table, idx[:nGroups*2*elems],
				(*stretch)(c.coded[c.w.at:]), (*stretch)(c.marks[c.w.at:]))
		}
		i, idx = i+took*elems, idx[took*2*elems:]
		c.cross(i)
		if took == nGroups && nGroups > 0 {
			continue
		}
		var err error
		rest := min(2*elems, len(idx))
		if i, err = c.appendPairs(i, idx[:rest], p.slower); err != nil {
			return i, err
		}
		idx = idx[rest:]
	}
	return i, nil
}

// room returns how many groups are certain to fit before the next chunk begins or the buffers end.
func (c *blockCoder) room(p *pace) int {
	return (min(c.next, 8*c.stop) - c.w.pos()) / p.bits
}
