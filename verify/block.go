package verify

import (
	"context"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// blockChunks is how many chunks a worker reads at once: about 200,000 weights, so that a read
// call costs little against decoding and all buffers stay in a core's own cache.
const blockChunks = 16

// chunkRange is a run of neighbouring chunks.
type chunkRange struct{ first, n int }

// chunkSet is what a call works on, cut into ranges: all chunks of a unit in blocks, or single ones.
type chunkSet struct {
	nChunks int
	singles []int // ascending; nil means all chunks
}

func (s chunkSet) len() int {
	if s.singles != nil {
		return len(s.singles)
	}
	return (s.nChunks + blockChunks - 1) / blockChunks
}

func (s chunkSet) at(i int) chunkRange {
	if s.singles != nil {
		return chunkRange{s.singles[i], 1}
	}
	first := i * blockChunks
	return chunkRange{first, min(blockChunks, s.nChunks-first)}
}

func (u *Unit) all() chunkSet { return chunkSet{nChunks: u.nChunks} }

// block holds one worker's share of the arrays: the bytes of a chunkRange. Buffers are reused from
// range to range.
type block struct {
	chunkRange
	stream []byte // coded stream, and readAhead bytes more; zeros behind the end
	gaps   []byte // gaps, and the next chunk's first bytes; zeros behind the end
	sm     []byte // sign_mantissa
	bf16   []byte // source weights, or decoded ones
	chunks [nLanes]chunkData
	codes  []codes // one per lane

	same func(exponents, sm, bf16 []byte) bool // sameWeights, or the variant that was asked for
}

// newBlock allocates buffers for any range of a set.
func (u *Unit) newBlock(set chunkSet) *block {
	chunks, elems := 0, 0
	for i := range set.len() {
		r := set.at(i)
		first, end := u.span(r)
		chunks, elems = max(chunks, r.n), max(elems, int(end-first))
	}
	return newBlock(chunks, elems)
}

func newBlock(chunks, elems int) *block {
	return &block{
		stream: make([]byte, chunks*chunkBytes+readAhead),
		gaps:   make([]byte, chunks*gapBytes+8),
		sm:     make([]byte, elems),
		bf16:   make([]byte, 2*elems),
		codes:  make([]codes, min(chunks, nLanes)),
		same:   sameWeights,
	}
}

// span returns the elements that chunks decode to.
func (u *Unit) span(r chunkRange) (first, end int64) {
	return int64(u.positions[r.first]), int64(u.positions[r.first+r.n])
}

// load reads the arrays' part of a range, and the source's where src is not nil.
func (u *Unit) load(b *block, r chunkRange, src io.ReaderAt) error {
	b.chunkRange = r
	first, end := u.span(r)
	b.sm, b.bf16 = b.sm[:end-first], b.bf16[:2*(end-first)]
	b.stream = b.stream[:r.n*chunkBytes+readAhead]
	b.gaps = b.gaps[:r.n*gapBytes+8]
	if err := readPadded(u.arrays.EncodedExponent, b.stream, int64(r.first)*chunkBytes, arrayEncodedExponent); err != nil {
		return err
	}
	if err := readPadded(u.arrays.Gaps, b.gaps, int64(r.first)*gapBytes, arrayGaps); err != nil {
		return err
	}
	if err := readAt(u.arrays.SignMantissa, b.sm, first, arraySignMantissa); err != nil {
		return err
	}
	if src == nil {
		return nil
	}
	return readAt(src, b.bf16, 2*first, "source")
}

// readPadded fills b from r at off, with zeros behind the end of r.
func readPadded(r *io.SectionReader, b []byte, off int64, array string) error {
	n := min(int64(len(b)), r.Size()-off)
	clear(b[n:])
	return readAt(r, b[:n], off, array)
}

// forEach runs do on every range of a set, in parallel, each worker with a block of its own. The
// error returned is that of the first range in order that has one, whatever the workers' timing;
// ranges behind it may be left out. workers <= 0 means one per processor.
func (u *Unit) forEach(ctx context.Context, set chunkSet, workers int, do func(*block, chunkRange) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	n := int64(set.len())
	var next atomic.Int64
	first := newEarliest(n)
	var g errgroup.Group
	for range min(workers, int(n)) {
		g.Go(func() error {
			b := u.newBlock(set)
			for i := next.Add(1) - 1; i < first.at.Load() && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := do(b, set.at(int(i))); err != nil {
					first.put(i, err)
				}
			}
			return nil
		})
	}
	_ = g.Wait() // the workers' errors are in first
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return first.err
}

// earliest keeps the error of the lowest range.
type earliest struct {
	at atomic.Int64 // its range, at first behind the last one
	mu sync.Mutex   // guards err, and writing to at

	err error
}

func newEarliest(n int64) *earliest {
	e := new(earliest)
	e.at.Store(n)
	return e
}

func (e *earliest) put(i int64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i < e.at.Load() {
		e.at.Store(i)
		e.err = err
	}
}
