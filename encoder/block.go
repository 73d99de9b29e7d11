package encoder

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

// lookBack is how many elements before its start a block may need. The block before may leave
// almost a whole octet, and a code has at least one bit.
const lookBack = octetBits

// errChanged means that the codes of pass 2 don't end where pass 1 computed.
var errChanged = errors.New("source changed since it was counted")

// unitCoder is what the blocks of a unit share in pass 2.
type unitCoder struct {
	u         *Unit
	src       io.ReaderAt
	dst       Dst
	table     *pairTable
	positions []uint32 // blocks set different entries
}

// blockCoder codes a block.
type blockCoder struct {
	*unitCoder
	buffers
	currentBlock
}

// coders holds idle coders. The blocks of all units share them, so that thousands of blocks leave
// no garbage.
var coders = sync.Pool{New: func() any { return new(blockCoder) }}

// buffers are reused from block to block. Their contents are undefined.
type buffers struct {
	elems []byte // BF16, and space for a strip
	sm    []byte // sign_mantissa, and space for a strip
	coded []byte // the coded stream
	marks []byte // the mark stream (see bitWriter)
	gaps  []byte
	idx   strip
}

// currentBlock is the block in progress: elements start to end-1. It owns the octets from bit base
// to bit limit of the unit's stream. Positions in the block's own streams count from base.
type currentBlock struct {
	b          int
	start, end int64
	bf16       []byte // elements from first on
	first      int64
	base       int64
	limit      int64
	w          bitWriter
	stop       int // no code may begin after this byte of coded
	next       int // the bit where the next chunk without a position begins
}

// block codes block b and writes the output that the block owns.
func (u *unitCoder) block(b int) error {
	c := coders.Get().(*blockCoder)
	defer coders.Put(c)
	c.unitCoder = u
	if err := c.encode(b); err != nil {
		return fmt.Errorf("encode block %d: %w", b, err)
	}
	return nil
}

func (c *blockCoder) encode(b int) error {
	if err := c.enter(b); err != nil {
		return err
	}
	n := int(c.end - c.start)
	c.sm = grow(c.sm, n+stripElems)
	if err := c.code(c.sm[:n]); err != nil {
		return err
	}
	c.finish()
	coded := c.coded[:min(c.limit/8, c.u.nBytes())-c.base/8]
	return cmp.Or(
		c.dst.write(NameSignMantissa, c.sm[:n], c.start),
		c.dst.write(NameEncodedExponent, coded, c.base/8),
		c.dst.write(NameGaps, c.gaps, c.base/octetBits*5))
}

// enter makes b the current block and reads its elements.
func (c *blockCoder) enter(b int) error {
	c.b = b
	c.start, c.end = blockRange(int64(b), c.u.block, c.u.nElems)
	c.first = max(0, c.start-lookBack)
	c.own()
	n := int(2 * (c.end - c.first))
	c.elems = grow(c.elems, n+2*stripElems)
	c.bf16 = c.elems[:n]
	if got, err := c.src.ReadAt(c.bf16, 2*c.first); got < n {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read %d bytes at %d: %w", n, 2*c.first, err)
	}
	return nil
}

// code makes the block's coded and mark streams and its sign_mantissa bytes.
func (c *blockCoder) code(sm []byte) error {
	start := int(c.start - c.first)
	i, err := c.complete(start, int(c.u.offset[c.b]-c.base))
	if err == nil {
		err = c.codes(i, start)
	}
	if err == nil {
		err = c.strips(sm, start)
	}
	if err == nil && c.base+int64(c.w.pos()) != c.u.offset[c.b+1] {
		err = errChanged
	}
	return err
}

// finish completes the streams and packs the gaps.
func (c *blockCoder) finish() {
	if c.end == c.u.nElems {
		c.tail()
	}
	nBytes := int(c.limit-c.base) / 8
	c.w.flush(nBytes, c.coded, c.marks)
	nOctets := nBytes / (octetBits / 8)
	c.gaps = grow(c.gaps, 5*nOctets+8)
	c.u.loops.gaps(c.gaps, c.marks[:nBytes])
	c.gaps = c.gaps[:5*nOctets]
}

// own computes which part of the output the block owns: the octets from the one in which it starts
// up to the one in which the next block starts. The last block also owns the padding of the last
// chunk (docs/format.md §7).
func (c *blockCoder) own() {
	u, b := c.u, c.b
	c.base = u.offset[b] / octetBits * octetBits
	c.limit = u.offset[b+1] / octetBits * octetBits
	if b+2 == len(u.offset) {
		c.limit = u.counts().Chunks() * chunkBits
	}
	c.stop = int(max(c.limit, u.offset[b+1])-c.base) / 8
	c.coded, c.marks = grow(c.coded, c.stop+slack), grow(c.marks, c.stop+slack)
	c.w = bitWriter{}
	c.next = int((c.base+chunkBits-1)/chunkBits*chunkBits - c.base)
	c.skipForeign()
}

// complete walks back from element i, which starts at bit pos, to the element whose code covers bit
// 0 of the block's streams. It writes the bits of that code from bit 0 on and returns the next
// element.
func (c *blockCoder) complete(i, pos int) (int, error) {
	book := c.u.book
	for pos > 0 {
		if i == 0 {
			return 0, errChanged
		}
		i--
		pos -= int(book.nBits[c.symbol(i)])
	}
	if pos == 0 {
		return i, nil
	}
	s := c.symbol(i)
	n := int(book.nBits[s]) + pos // bits that reach into the octet
	c.w.append(uint64(book.bits[s])&(1<<n-1), 0, uint64(n), c.coded, c.marks)
	return i + 1, nil
}

// codes appends elements i to end-1.
func (c *blockCoder) codes(i, end int) error {
	c.cross(i)
	for ; i < end; i++ {
		if c.w.at > c.stop {
			return errChanged
		}
		s := c.symbol(i)
		n := uint64(c.u.book.nBits[s])
		c.w.append(uint64(c.u.book.bits[s]), 1<<n>>1, n, c.coded, c.marks)
		if c.w.pos() >= c.next {
			c.cross(i + 1)
		}
	}
	return nil
}

// cross records the output position of a chunk that began at or before the end of the stream
// (docs/format.md §7). i is the element that starts at the end of the stream.
func (c *blockCoder) cross(i int) {
	pos := c.w.pos()
	if pos < c.next {
		return
	}
	for i > 0 {
		before := pos - int(c.u.book.nBits[c.symbol(i-1)])
		if before < c.next {
			break
		}
		pos, i = before, i-1
	}
	c.positions[(c.base+int64(c.next))/chunkBits] = uint32(c.first + int64(i))
	c.next += chunkBits
	c.skipForeign()
}

// skipForeign skips the next chunk if another block owns its first octet, or if it has no position.
func (c *blockCoder) skipForeign() {
	begin := c.base + int64(c.next)
	if begin >= c.limit || begin/chunkBits >= int64(c.u.nMarked) {
		c.next = math.MaxInt
	}
}

// tail fills the last byte with the first bits of EOF's code, then with zeros, and marks the first
// of these bits as the start of a code (docs/format.md §7).
func (c *blockCoder) tail() {
	if c.w.n == 0 {
		return
	}
	n := int(8 - c.w.n)
	eof := c.u.book.eof
	rest := eof.bits << n >> eof.n
	c.w.append(rest, 1<<(n-1), uint64(n), c.coded, c.marks)
}

func (c *blockCoder) symbol(i int) byte { return exponent(c.bf16[2*i:]) }

// grow returns a slice of n bytes with undefined contents: buf if it's large enough. It allocates a
// little more than n, because the next block may need it.
func grow(buf []byte, n int) []byte {
	if cap(buf) < n {
		return make([]byte, n, n+n/8)
	}
	return buf[:n]
}
