package fetch

import (
	"context"
	"encoding"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/sha256pair"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// blocksAhead is how many blocks the reader of one file may be ahead of the scatterer.
const blocksAhead = 4

// A Fetcher reads source files and fills the spools of tasks. Its fields are set before Run and belong to it until Run
// returns.
type Fetcher struct {
	Source model.Source
	Tasks  []*Task
	Files  []*File
	Ledger *ledger.Ledger // says what is done, and records what arrived for good
	Room   *spool.Room    // for spools
	// ByOutput fetches the ranges of one output after the other instead of one file after the other.
	ByOutput bool
	// Parallel is the number of files that are read at once if the source is local; from a Hub it is one.
	Parallel  int
	DropCache bool // pages of a local source are not needed again
	Progress  *progress.Counters

	byOutput map[*spans.Output]*Task
	complete chan<- *Task
	sums     sha256pair.Lockstep // of files that are read at once
}

// Run reads what unfinished tasks still need and sends each task as soon as it is complete.
func (f *Fetcher) Run(ctx context.Context, complete chan<- *Task) error {
	f.complete = complete
	f.byOutput = map[*spans.Output]*Task{}
	for _, t := range f.Tasks {
		f.byOutput[t.Output] = t
	}
	if err := f.sendComplete(ctx); err != nil {
		return err
	}
	if f.ByOutput {
		return f.outputsInTurn(ctx)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(f.filesAtOnce())
	for _, file := range f.Files {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := f.file(ctx, file); err != nil {
				return &Error{file.Path, err}
			}
			return nil
		})
	}
	return g.Wait()
}

// filesAtOnce is one where spools have to fill up in file order.
func (f *Fetcher) filesAtOnce() int {
	for _, t := range f.Tasks {
		if !InPlace(f.Source, t.Output) {
			return 1
		}
	}
	return max(1, f.Parallel)
}

// InPlace reports whether an output can be made from the source files where they are, without a spool.
func InPlace(src model.Source, o *spans.Output) bool { return src.Local(0) != nil && !o.Narrows() }

// sendComplete sends the tasks that wait for no byte, such as an empty remainder, or one that an earlier run has fetched.
func (f *Fetcher) sendComplete(ctx context.Context) error {
	for _, t := range f.Tasks {
		if !t.complete() || f.Ledger.Done(t.Path) {
			continue
		}
		if err := f.open(ctx, t); err != nil {
			return err
		}
		if err := streams.Send(ctx, f.complete, t); err != nil {
			return err
		}
	}
	return nil
}

// open gives a task its spool and its counters, once. It waits while the budget for spools is used up.
func (f *Fetcher) open(ctx context.Context, t *Task) error {
	t.open.Do(func() {
		if t.openErr = t.count(); t.openErr != nil {
			return
		}
		if InPlace(f.Source, t.Output) {
			t.Spool = InPlaceSpool(f.Source, t.Output, f.DropCache)
			return
		}
		t.Spool, t.openErr = f.Room.New(ctx, t.Output)
	})
	return t.openErr
}

// InPlaceSpool reads an output's bytes from local source files.
func InPlaceSpool(src model.Source, o *spans.Output, dropCache bool) spool.Spool {
	var extents []spool.Extent
	for t := range o.Tensors() {
		extents = append(extents, spool.Extent{At: t.At, Length: t.Length, R: src.Local(t.File), Off: t.Offset})
	}
	return spool.NewInPlace(extents, dropCache)
}

// file reads one file, if anything of it is still needed.
func (f *Fetcher) file(ctx context.Context, file *File) error {
	if file.ByRange {
		return f.ranges(ctx, file, f.needs)
	}
	first := file.FirstNeeded(f.needs)
	if c, ok := f.Ledger.Final(file.Path); ok && first == file.Size && file.Want != "" {
		f.Progress.Fetched.Add(file.Size)
		return file.finish(c.SHA256)
	}
	if file.Want == "" {
		first = 0 // nothing pins the file, so all that outputs were made from has to pass once more
	}
	h, from := f.Ledger.Checkpoint(file.Path, first).Hash()
	f.Progress.Fetched.Add(from)
	if from < file.Size {
		if err := f.stream(ctx, file, h, from, file.Size, f.needs); err != nil {
			return err
		}
	}
	return file.finish(hex.EncodeToString(h.Sum(nil)))
}

// needs reports whether an unfinished task lacks the tensor of a delivery.
func (f *Fetcher) needs(d spans.Delivery) bool {
	return !f.Ledger.Done(d.Output.Path) && !f.byOutput[d.Output].holds(d.At)
}

// outputsInTurn fetches each unfinished output by itself; those first that an earlier run has begun, which hold budget.
func (f *Fetcher) outputsInTurn(ctx context.Context) error {
	begunFirst := slices.Clone(f.Tasks)
	slices.SortStableFunc(begunFirst, func(a, b *Task) int { return boolToInt(b.resumed) - boolToInt(a.resumed) })
	for _, t := range begunFirst {
		if f.Ledger.Done(t.Path) {
			continue
		}
		for _, file := range f.Files {
			needs := func(d spans.Delivery) bool { return d.Output == t.Output && !t.holds(d.At) }
			if err := f.ranges(ctx, file, needs); err != nil {
				return &Error{file.Path, err}
			}
		}
	}
	return nil
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ranges reads only the segments that are needed. Neighbors closer than a block are read as one.
func (f *Fetcher) ranges(ctx context.Context, file *File, needs func(spans.Delivery) bool) error {
	for i := 0; i < len(file.Segments); {
		if !slices.ContainsFunc(file.Segments[i].To, needs) {
			i++
			continue
		}
		from, end := file.Segments[i].Off, file.Segments[i].End
		for i++; i < len(file.Segments) && slices.ContainsFunc(file.Segments[i].To, needs) && file.Segments[i].Off-end < streams.BlockBytes; i++ {
			end = file.Segments[i].End
		}
		if err := f.stream(ctx, file, nil, from, end, needs); err != nil {
			return err
		}
	}
	return nil
}

// block is a piece of a file on its way from the reader to the scatterer.
type block struct {
	off     int64
	buf     []byte
	segment int // index of the segment that it lies in, -1 for none
	// Where a segment ends under a hash: the sha256 of the file up to there, and the hash's state if reading can go on there.
	prefix string
	state  []byte
}

// stream reads [from, end) of a file and scatters it; with h, through that hash. The reader runs beside the scatterer.
func (f *Fetcher) stream(ctx context.Context, file *File, h hash.Hash, from, end int64, needs func(spans.Delivery) bool) error {
	g, ctx := errgroup.WithContext(ctx) // the source's too: a scatterer that fails ends a read that waits
	r, err := f.Source.Stream(ctx, file.Index, from, end)
	if err != nil {
		g.Go(func() error { return err })
		return g.Wait()
	}
	defer r.Close()
	blocks := make(chan block, blocksAhead)
	free := make(chan []byte, blocksAhead+2)
	size := min(streams.BlockBytes, end-from) // there may be many small files
	for range cap(free) {
		free <- make([]byte, size)
	}
	if h != nil {
		f.sums.Join()
	}
	g.Go(func() error {
		defer close(blocks)
		if h != nil {
			defer f.sums.Leave()
		}
		read := &reader{file: file, r: timedReader{r, f.Progress}, h: h, sums: &f.sums, free: free}
		return read.run(ctx, from, end, blocks)
	})
	g.Go(func() error {
		s := &scatterer{Fetcher: f, file: file, needs: needs, hashed: h != nil, expected: f.expected(file, from, h)}
		for b := range blocks {
			if err := s.scatter(ctx, b); err != nil {
				return err
			}
			f.Progress.Fetched.Add(int64(len(b.buf)))
			free <- b.buf[:size]
		}
		return nil
	})
	return g.Wait()
}

// timedReader counts the time that is spent waiting for a source.
type timedReader struct {
	r io.Reader
	p *progress.Counters
}

func (t timedReader) Read(b []byte) (int, error) {
	done := t.p.Timed(progress.Fetch)
	n, err := t.r.Read(b)
	done(int64(n))
	return n, err
}

// reader reads a stretch of a file in blocks that end where segments do, and hashes them.
type reader struct {
	file *File
	r    io.Reader
	h    hash.Hash // nil: none
	sums *sha256pair.Lockstep
	free <-chan []byte
}

func (r *reader) run(ctx context.Context, from, end int64, out chan<- block) error {
	next := 0
	for off := from; off < end; {
		b, stop := r.cut(&next, off, end)
		select {
		case b.buf = <-r.free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		b.buf = b.buf[:min(int64(len(b.buf)), stop-off)]
		if _, err := io.ReadFull(r.r, b.buf); err != nil {
			return fmt.Errorf("read at offset %d: %w", off, streams.Short(err))
		}
		if err := r.file.checkHeader(off, b.buf); err != nil {
			return err
		}
		off += int64(len(b.buf))
		if err := r.hash(ctx, &b, off == stop); err != nil {
			return err
		}
		if err := streams.Send(ctx, out, b); err != nil {
			return err
		}
	}
	return nil
}

// cut begins a block at off: it ends where the segment there ends, or where the next one begins. next is the first segment
// that is not behind off.
func (r *reader) cut(next *int, off, end int64) (b block, stop int64) {
	segments := r.file.Segments
	for *next < len(segments) && segments[*next].End <= off {
		*next++
	}
	b = block{off: off, segment: -1}
	if *next == len(segments) {
		return b, end
	}
	if s := segments[*next]; off < s.Off {
		return b, min(end, s.Off)
	}
	b.segment = *next
	return b, min(end, segments[*next].End)
}

// hash adds a block to the hash. At the end of a segment it takes the sum up to there.
func (r *reader) hash(ctx context.Context, b *block, ends bool) error {
	if r.h == nil {
		return nil
	}
	if err := r.sums.Write(ctx, r.h, b.buf); err != nil {
		return err
	}
	if b.segment < 0 || !ends {
		return nil
	}
	b.prefix = hex.EncodeToString(r.h.Sum(nil))
	if r.file.Want == "" {
		return nil // a rerun reads the file from its beginning
	}
	var err error
	b.state, err = r.h.(encoding.BinaryMarshaler).MarshalBinary()
	return err
}
