package encoder

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
)

// blockElems is how many weights a block holds. Its buffers fit a core's own cache, and it's large
// enough that system calls cost little.
const blockElems = 128 << 10

// options are for tests. They change how the work is done, and never the output.
type options struct {
	loops *loops // nil: the fastest on this machine
	block int    // elements per block; 0: blockElems
}

// errEmpty is a unit without weights.
var errEmpty = errors.New("unit has no elements")

// Counter is pass 1 over a unit. It counts the exponents of every block. Goroutines may share it.
type Counter struct {
	sizes  []int64
	nElems int64
	block  int64
	loops  *loops

	mu     sync.Mutex
	counts [][256]uint32 // per block; a block has fewer than 2^32 elements
	last   byte          // the exponent of the last element
	err    error         // the first misuse of Add
}

// NewCounter starts pass 1 of a unit. sizes has the number of elements of each tensor in attribute
// order, which is part of the format; NewCounter copies it. For a unit beyond the limits of
// docs/format.md §9, NewCounter returns an [*UnsupportedError]. A unit without elements and a
// negative number are errors, too.
func NewCounter(sizes []int64) (*Counter, error) { return options{}.newCounter(sizes) }

func (o options) newCounter(sizes []int64) (*Counter, error) {
	c := &Counter{block: int64(cmp.Or(o.block, blockElems)), loops: cmp.Or(o.loops, fastest())}
	for i, n := range sizes {
		if n < 0 {
			return nil, fmt.Errorf("tensor %d has %d elements", i, n)
		}
		if n > maxElems-c.nElems {
			return nil, &UnsupportedError{ReasonTooLarge,
				fmt.Sprintf("more than %d weights", int64(maxElems))}
		}
		c.nElems += n
	}
	if c.nElems < 1 {
		return nil, errEmpty
	}
	c.sizes = append(c.sizes, sizes...)
	c.counts = make([][256]uint32, (c.nElems+c.block-1)/c.block)
	return c, nil
}

// Add counts the elements from number elem on. bf16 is little-endian BF16, borrowed until Add
// returns. Add pieces in any order and concurrently, but each element exactly once. If a piece lies
// outside the unit, Finish reports it.
func (c *Counter) Add(elem int64, bf16 []byte) {
	if c == nil {
		return
	}
	n := int64(len(bf16) / 2)
	if len(bf16)%2 != 0 || elem < 0 || elem > c.nElems-n {
		err := fmt.Errorf("count %d bytes at element %d: outside the unit's %d elements", len(bf16),
			elem, c.nElems)
		c.locked(func() { c.err = cmp.Or(c.err, err) })
		return
	}
	if n > 0 && elem+n == c.nElems {
		c.locked(func() { c.last = exponent(bf16[len(bf16)-2:]) })
	}
	t := tallies.Get().(*tally)
	defer tallies.Put(t)
	for n > 0 {
		b := elem / c.block
		here := min(n, (b+1)*c.block-elem)
		h := t.count(c.loops, bf16[:2*here])
		c.locked(func() {
			for s, n := range h {
				c.counts[b][s] += uint32(n)
			}
		})
		elem, n, bf16 = elem+here, n-here, bf16[2*here:]
	}
}

func (c *Counter) locked(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// Finish ends pass 1. No Add may be running or follow. Finish reports missing pieces and pieces
// that didn't fit. It returns an [*UnsupportedError] for every limit that the histograms show;
// Unit.Encode finds the remaining cases of the shared memory limit.
func (c *Counter) Finish() (*Unit, error) {
	total, err := c.total()
	if err != nil {
		return nil, err
	}
	book, rows, err := total.tables()
	if err != nil {
		return nil, err
	}
	u := c.unit(book, total, rows)
	if u.overfull() {
		return nil, &UnsupportedError{ReasonSharedMemory,
			fmt.Sprintf("long runs of short codes: more than %d weights in a chunk", maxPerChunk)}
	}
	return u, nil
}

// total sums the blocks and checks that each is complete.
func (c *Counter) total() (*histogram, error) {
	if c != nil && c.err != nil {
		return nil, c.err
	}
	if c == nil || c.nElems < 1 {
		return nil, errors.New("the counter isn't of NewCounter")
	}
	var sum histogram
	for b := range c.counts {
		var n int64
		for s, count := range c.counts[b] {
			sum[s] += uint64(count)
			n += int64(count)
		}
		if first, end := blockRange(int64(b), c.block, c.nElems); n != end-first {
			return nil, fmt.Errorf("elements %d to %d: %d of %d counted", first, end-1, n,
				end-first)
		}
	}
	return &sum, nil
}

// blockRange returns the elements of block b.
func blockRange(b, block, nElems int64) (first, end int64) {
	return b * block, min((b+1)*block, nElems)
}
