package pipeline

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/sha256pair"
)

// blockBytes is how much is read, hashed and dealt at a time; a multiple of every element size.
const blockBytes = 1 << 20

// blocksAhead is how many blocks the reader of one file may be ahead of the dealer.
const blocksAhead = 4

// A fetcher streams the source files and deals their bytes to the tasks.
type fetcher struct {
	src    Source
	model  *Model
	tasks  []*task
	files  []*fileState
	ledger *ledger
	ready  chan<- *task // closed by run
	// begin prepares a task for its first byte: budget, spool, counters. arrived is told how much went into spools.
	begin    func(ctx context.Context, t *task) error
	arrived  func(n int64)
	byTask   bool // fetch one task's ranges after the other's, not file after file
	parallel int  // files at once
	progress *Progress
	sums     sha256pair.Lockstep // of the files that are read at once
}

// run streams all files that are still needed and closes ready.
func (f *fetcher) run(ctx context.Context) error {
	defer close(f.ready)
	if err := f.emitComplete(ctx); err != nil {
		return err
	}
	if f.byTask {
		return f.tasksInTurn(ctx)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, f.parallel))
	for _, fs := range f.files {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := f.file(ctx, fs); err != nil {
				return &FetchError{fs.path, err}
			}
			return nil
		})
	}
	return g.Wait()
}

// emitComplete hands on tasks that wait for no byte, such as an empty remainder, or one that an earlier run has fetched.
func (f *fetcher) emitComplete(ctx context.Context) error {
	for _, t := range f.tasks {
		if t.left.Load() > 0 || f.done(t) {
			continue
		}
		if err := f.start(ctx, t); err != nil {
			return err
		}
		if err := f.emit(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (f *fetcher) done(t *task) bool {
	_, ok := f.ledger.output(t.path)
	return ok
}

func (f *fetcher) emit(ctx context.Context, t *task) error {
	select {
	case f.ready <- t:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start runs begin once for each task, however many files its bytes come from.
func (f *fetcher) start(ctx context.Context, t *task) error {
	t.once.Do(func() { t.beginErr = f.begin(ctx, t) })
	return t.beginErr
}

// file streams one file, if anything is still wanted from it.
func (f *fetcher) file(ctx context.Context, fs *fileState) error {
	pending := func(d delivery) bool { return !f.done(d.task) }
	if fs.unchecked {
		return f.ranges(ctx, fs, pending)
	}
	cp, first := f.ledger.file(fs.path), fs.firstPending(f.done, held)
	if fs.want == "" {
		cp = Checkpoint{} // nothing pins the file, so it has to pass all that outputs were made from once more
	}
	if cp.Integrity != "" && first == fs.size {
		fs.know(cp.SHA256)
		f.progress.Fetched.Add(fs.size)
		return nil
	}
	h, from := resumeHash(cp, first)
	f.progress.Fetched.Add(from)
	if err := f.stream(ctx, fs, h, from, fs.size, pending); err != nil {
		return err
	}
	return fs.finish(hex.EncodeToString(h.Sum(nil)))
}

// tasksInTurn fetches each unfinished task by itself; first those that an earlier run has begun, which hold budget.
func (f *fetcher) tasksInTurn(ctx context.Context) error {
	for _, t := range append(pick(f.tasks, true), pick(f.tasks, false)...) {
		if f.done(t) {
			continue
		}
		for _, fs := range f.files {
			if err := f.ranges(ctx, fs, func(d delivery) bool { return d.task == t }); err != nil {
				return &FetchError{fs.path, err}
			}
		}
	}
	return nil
}

// pick lists the tasks that an earlier run has begun, or the others.
func pick(tasks []*task, restored bool) []*task {
	return slices.DeleteFunc(slices.Clone(tasks), func(t *task) bool { return t.restored != restored })
}

// ranges reads only what is wanted. Neighbours closer than a block are read as one.
func (f *fetcher) ranges(ctx context.Context, fs *fileState, want func(delivery) bool) error {
	for i := 0; i < len(fs.segs); {
		from, end := firstWanted(fs.segs[i], want), fs.segs[i].end
		if from == end {
			i++
			continue
		}
		for i++; i < len(fs.segs) && firstWanted(fs.segs[i], want) == fs.segs[i].off && fs.segs[i].off-end < blockBytes; i++ {
			end = fs.segs[i].end
		}
		if err := f.stream(ctx, fs, nil, from, end, want); err != nil {
			return err
		}
	}
	return nil
}

// firstWanted is the offset of the first byte of a segment that somebody wants and does not have; its end if nobody does.
func firstWanted(s segment, want func(delivery) bool) int64 {
	first := s.end
	for _, d := range s.dst {
		if want(d) {
			first = min(first, s.from(d))
		}
	}
	return first
}

// block is a piece of a file on its way from the reader to the dealer.
type block struct {
	off    int64
	buf    []byte
	seg    int    // index of the segment it lies in, -1 for none
	prefix string // sha256 of the file up to the block's end, where a segment ends
}

// stream reads [from, end) of a file and deals it. The reader, which also hashes, runs beside the dealer.
func (f *fetcher) stream(ctx context.Context, fs *fileState, h hash.Hash, from, end int64, want func(delivery) bool) error {
	g, ctx := errgroup.WithContext(ctx) // the source's too: a dealer that fails ends a read that waits
	r, err := f.src.Stream(ctx, fs.index, from, end)
	if err != nil {
		g.Go(func() error { return err })
		return g.Wait()
	}
	defer r.Close()
	blocks := make(chan block, blocksAhead)
	free := make(chan []byte, blocksAhead+2)
	for range cap(free) {
		free <- make([]byte, blockBytes)
	}
	if h != nil {
		f.sums.Join()
	}
	g.Go(func() error {
		defer close(blocks)
		if h != nil {
			defer f.sums.Leave()
		}
		return f.readBlocks(ctx, fs, timedReader{r, f.progress}, h, from, end, free, blocks)
	})
	fs.dealtTo(from)
	g.Go(func() error {
		d := dealer{f: f, fs: fs, want: want, expect: f.expected(fs, from, h)}
		for b := range blocks {
			if err := d.deal(ctx, b); err != nil {
				return err
			}
			fs.dealtTo(b.off + int64(len(b.buf)))
			f.progress.Fetched.Add(int64(len(b.buf)))
			free <- b.buf[:blockBytes]
		}
		return nil
	})
	return g.Wait()
}

// timedReader counts the time that is spent waiting for a source.
type timedReader struct {
	r io.Reader
	p *Progress
}

func (t timedReader) Read(b []byte) (int, error) {
	done := t.p.timed(StageFetch)
	n, err := t.r.Read(b)
	done(int64(n))
	return n, err
}

// readBlocks cuts the stream at segment borders, hashes it, and leaves a mark at the start of each segment.
func (f *fetcher) readBlocks(ctx context.Context, fs *fileState, r io.Reader, h hash.Hash, from, end int64, free <-chan []byte, out chan<- block) error {
	seg := 0
	for off := from; off < end; {
		for seg < len(fs.segs) && fs.segs[seg].end <= off {
			seg++
		}
		b := block{off: off, seg: -1}
		stop := end
		if seg < len(fs.segs) {
			if s := fs.segs[seg]; off >= s.off {
				b.seg, stop = seg, min(end, s.end)
			} else {
				stop = min(end, s.off)
			}
		}
		if h != nil && b.seg >= 0 && (off == fs.segs[seg].off || off-fs.lastMark >= markBytes) {
			fs.mark(off, h, off > fs.segs[seg].off)
		}
		select {
		case b.buf = <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		b.buf = b.buf[:min(int64(blockBytes), stop-off)]
		if _, err := io.ReadFull(r, b.buf); err != nil {
			return fmt.Errorf("read at offset %d: %w", off, readError(err))
		}
		if err := fs.checkHeader(off, b.buf); err != nil {
			return err
		}
		off += int64(len(b.buf))
		if h != nil {
			f.sums.Write(h, b.buf)
			if b.seg >= 0 && off == fs.segs[seg].end {
				b.prefix = hex.EncodeToString(h.Sum(nil))
			}
		}
		select {
		case out <- b:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
