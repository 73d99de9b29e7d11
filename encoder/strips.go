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

// strips splits and codes len(sm) elements, starting with element i. The pace follows the code
// lengths of the previous strip; for the first strip, those of the whole block.
func (c *blockCoder) strips(sm []byte, i int) error {
	average := float64(c.u.offset[c.b+1]-c.u.offset[c.b]) / float64(len(sm))
	for len(sm) > 0 {
		n := min(stripElems, len(sm))
		before := c.w.pos()
		if err := c.strip(sm[:n], i, average); err != nil {
			return err
		}
		average = float64(c.w.pos()-before) / float64(n)
		sm, i = sm[n:], i+n
	}
	return nil
}

// strip splits and codes len(sm) elements, at most one strip, starting with element i.
func (c *blockCoder) strip(sm []byte, i int, average float64) error {
	// At the end of a block, this is more than sm and c.bf16 hold. Their buffers have space for it.
	bf16 := c.bf16[2*i : 2*(i+stripElems)]
	c.u.loops.split((*[stripElems]byte)(sm[:stripElems]), (*[2 * stripElems]byte)(bf16), &c.idx,
		c.table.width)
	end := i + len(sm)
	i, err := c.appendPairs(i, c.idx[:2*(len(sm)&^15)], paceFor(c.u.loops, c.table, average))
	if err != nil {
		return err
	}
	return c.codes(i, end)
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
		took := c.appendGroups(p, i, idx[:nGroups*2*elems])
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

// appendGroups runs a pace's inner loop.
func (c *blockCoder) appendGroups(p *pace, i int, idx []byte) (took int) {
	if len(idx) == 0 {
		return 0
	}
	ahead := &c.bf16[min(2*(i+stripElems), len(c.bf16)-1)]
	return p.loop(c.u.loops)(&c.w, c.table, idx, (*stretch)(c.coded[c.w.at:]),
		(*stretch)(c.marks[c.w.at:]), ahead)
}

// room returns how many groups are certain to fit before the next chunk begins or the buffers end.
func (c *blockCoder) room(p *pace) int {
	return (min(c.next, 8*c.stop) - c.w.pos()) / p.bits
}
