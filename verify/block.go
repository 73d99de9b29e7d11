package verify

import (
	"context"
	"io"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// blockChunks is how many chunks a worker reads at once: about 200,000 weights, so that a read
// call costs little against decoding and all buffers stay in a core's own cache.
const blockChunks = 16

// chunkRange is a run of neighbouring chunks.
type chunkRange struct{ first, n int }

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
}

// newBlock allocates buffers for any of the given ranges.
func (u *Unit) newBlock(ranges []chunkRange) *block {
	chunks, elems := 0, 0
	for _, r := range ranges {
		first, end := u.span(r)
		chunks, elems = max(chunks, r.n), max(elems, int(end-first))
	}
	return &block{
		stream: make([]byte, chunks*chunkBytes+readAhead),
		gaps:   make([]byte, chunks*gapBytes+8),
		sm:     make([]byte, elems),
		bf16:   make([]byte, 2*elems),
		codes:  make([]codes, min(chunks, nLanes)),
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

// ranges cuts the unit into blocks.
func (u *Unit) ranges() []chunkRange {
	var rs []chunkRange
	for c := 0; c < u.nChunks; c += blockChunks {
		rs = append(rs, chunkRange{c, min(blockChunks, u.nChunks-c)})
	}
	return rs
}

// forEach runs do on every range, in parallel, each worker with a block of its own. The error
// returned is that of the first range in order that has one, whatever the workers' timing; ranges
// behind it may be left out. workers <= 0 means one per processor.
func (u *Unit) forEach(ctx context.Context, ranges []chunkRange, workers int, do func(*block, chunkRange) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, len(ranges))
	var next, stop atomic.Int64
	stop.Store(int64(len(ranges)))
	errs := make([]error, len(ranges))
	var g errgroup.Group
	for range workers {
		g.Go(func() error {
			b := u.newBlock(ranges)
			for i := next.Add(1) - 1; i < stop.Load() && ctx.Err() == nil; i = next.Add(1) - 1 {
				if errs[i] = do(b, ranges[i]); errs[i] != nil {
					lowerTo(&stop, i)
				}
			}
			return nil
		})
	}
	_ = g.Wait() // workers leave their errors in errs
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if i := stop.Load(); i < int64(len(ranges)) {
		return errs[i]
	}
	return nil
}

// lowerTo sets a to v unless it is lower already.
func lowerTo(a *atomic.Int64, v int64) {
	for {
		old := a.Load()
		if old <= v || a.CompareAndSwap(old, v) {
			return
		}
	}
}
