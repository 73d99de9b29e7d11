package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/encoder"
)

// blockBytes is how much is read, hashed and dealt at a time; a multiple of every element size.
const blockBytes = 1 << 20

// blocksAhead is how many blocks the reader of one file may be ahead of the dealer.
const blocksAhead = 4

// SourceError says that a source file is not what it should be: its sha256, or the part of it that an earlier run used.
type SourceError struct {
	File      string
	Want, Got string
	// End is 0 for the whole file, else the length of the prefix that differs from what an earlier run read.
	End int64
}

func (e *SourceError) Error() string {
	if e.End > 0 {
		return fmt.Sprintf("source file %s: its first %d bytes differ from those an earlier run read", e.File, e.End)
	}
	return fmt.Sprintf("source file %s: sha256 is %s, published is %s", e.File, e.Got, e.Want)
}

// A fetcher streams the source files and deals their bytes to the tasks.
type fetcher struct {
	src    Source
	model  *Model
	tasks  []*task
	files  []*fileState
	ledger *ledger
	ready  chan<- *task // closed by run
	// begin prepares a task for its first byte: budget, spool, counters.
	begin    func(ctx context.Context, t *task) error
	byTask   bool // fetch one task's ranges after the other's, not file after file
	parallel int  // files at once
	progress *Progress
}

// fileState is what a run knows of one source file.
type fileState struct {
	index     int
	path      string
	size      int64
	want      string // published sha256, "" if there is none
	header    []byte // JSON that the plan was made from
	segs      []segment
	unchecked bool // only the wanted ranges are read, so the file's hash is not checked

	mu    sync.Mutex
	marks []mark // at the start of each segment, rising
	sum   string // of the whole file, once read
}

// mark is the state of the hash after off bytes.
type mark struct {
	off   int64
	state []byte
}

// run streams all files that are still needed and closes ready.
func (f *fetcher) run(ctx context.Context) error {
	defer close(f.ready)
	if err := f.emitEmpty(ctx); err != nil {
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
				return fmt.Errorf("fetch %s: %w", fs.path, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// emitEmpty hands on tasks that wait for no byte, such as an empty remainder.
func (f *fetcher) emitEmpty(ctx context.Context) error {
	for _, t := range f.tasks {
		if t.size > 0 || f.done(t) {
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
	cp := f.ledger.file(fs.path)
	if cp.Integrity != "" && !fs.pending(f.done) {
		fs.sum = cp.SHA256
		f.progress.Fetched.Add(fs.size)
		return nil
	}
	h, from := resumeHash(cp, fs.firstPending(f.done))
	f.progress.Fetched.Add(from)
	if err := f.stream(ctx, fs, h, from, fs.size, pending); err != nil {
		return err
	}
	return fs.finish(hex.EncodeToString(h.Sum(nil)))
}

// resumeHash restores the hash of a checkpoint, or starts at 0 if it can't be used: bytes before it are wanted after all.
func resumeHash(cp Checkpoint, first int64) (hash.Hash, int64) {
	h := sha256.New()
	if len(cp.State) == 0 || cp.Offset > first {
		return h, 0
	}
	if h.(encoding.BinaryUnmarshaler).UnmarshalBinary(cp.State) != nil {
		return sha256.New(), 0
	}
	return h, cp.Offset
}

// finish checks the sum of the whole file.
func (fs *fileState) finish(sum string) error {
	if fs.want != "" && sum != fs.want {
		return &SourceError{File: fs.path, Want: fs.want, Got: sum}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.sum = sum
	return nil
}

// pending tells whether some task still wants bytes of the file.
func (fs *fileState) pending(done func(*task) bool) bool { return fs.firstPending(done) < fs.size }

// firstPending is the offset of the first segment that an unfinished task wants, or the file's size.
func (fs *fileState) firstPending(done func(*task) bool) int64 {
	for _, s := range fs.segs {
		for _, d := range s.dst {
			if !done(d.task) {
				return s.off
			}
		}
	}
	return fs.size
}

// checkpoint is the file's state for the journal, given what is finished.
func (fs *fileState) checkpoint(done func(*task) bool) Checkpoint {
	first := fs.firstPending(done)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	c := Checkpoint{File: fs.path}
	if fs.unchecked {
		return c
	}
	if first == fs.size && fs.sum != "" {
		c.Integrity, c.SHA256 = integrityStreamed, fs.sum
		return c
	}
	for _, m := range fs.marks {
		if m.off > first {
			break
		}
		c.Offset, c.State = m.off, m.state
	}
	return c
}

// tasksInTurn fetches each unfinished task by itself.
func (f *fetcher) tasksInTurn(ctx context.Context) error {
	for _, t := range f.tasks {
		if f.done(t) {
			continue
		}
		for _, fs := range f.files {
			if err := f.ranges(ctx, fs, func(d delivery) bool { return d.task == t }); err != nil {
				return fmt.Errorf("fetch %s: %w", fs.path, err)
			}
		}
	}
	return nil
}

// ranges reads only what is wanted. Neighbours closer than a block are read as one.
func (f *fetcher) ranges(ctx context.Context, fs *fileState, want func(delivery) bool) error {
	wanted := func(s segment) bool { return slices.ContainsFunc(s.dst, want) }
	for i := 0; i < len(fs.segs); {
		if !wanted(fs.segs[i]) {
			i++
			continue
		}
		from, end := fs.segs[i].off, fs.segs[i].end
		for i++; i < len(fs.segs) && wanted(fs.segs[i]) && fs.segs[i].off-end < blockBytes; i++ {
			end = fs.segs[i].end
		}
		if err := f.stream(ctx, fs, nil, from, end, want); err != nil {
			return err
		}
	}
	return nil
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
	r, err := f.src.Stream(ctx, fs.index, from, end)
	if err != nil {
		return err
	}
	defer r.Close()
	g, ctx := errgroup.WithContext(ctx)
	blocks := make(chan block, blocksAhead)
	free := make(chan []byte, blocksAhead+2)
	for range cap(free) {
		free <- make([]byte, blockBytes)
	}
	g.Go(func() error {
		defer close(blocks)
		return readBlocks(ctx, fs, timedReader{r, f.progress}, h, from, end, free, blocks)
	})
	g.Go(func() error {
		d := dealer{f: f, fs: fs, want: want, expect: f.expected(fs, from, h)}
		for b := range blocks {
			if err := d.deal(ctx, b); err != nil {
				return err
			}
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
func readBlocks(ctx context.Context, fs *fileState, r io.Reader, h hash.Hash, from, end int64, free <-chan []byte, out chan<- block) error {
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
		if h != nil && b.seg >= 0 && off == fs.segs[seg].off {
			fs.mark(off, h)
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
			h.Write(b.buf)
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

// HeaderError says that a source file does not begin with the header that the plan was made from, so that the plan may
// be wrong although the file's sha256 is right.
type HeaderError struct{ File string }

func (e *HeaderError) Error() string {
	return fmt.Sprintf("source file %s: its header is not the one that the plan was made from; it was read wrong or has changed", e.File)
}

// checkHeader compares what p, read at off, holds of the header.
func (fs *fileState) checkHeader(off int64, p []byte) error {
	const start = 8 // behind the length
	from, end := max(off, start), min(off+int64(len(p)), start+int64(len(fs.header)))
	if from < end && !bytes.Equal(p[from-off:end-off], fs.header[from-start:end-start]) {
		return &HeaderError{fs.path}
	}
	return nil
}

// mark records the hash's state before the segment at off.
func (fs *fileState) mark(off int64, h hash.Hash) {
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return // no checkpoint here; a resume starts further ahead
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.marks = append(fs.marks, mark{off, state})
}

// expected lists the prefix digests that finished outputs saw, by the prefix's end.
func (f *fetcher) expected(fs *fileState, from int64, h hash.Hash) map[int64]string {
	m := map[int64]string{}
	if h == nil {
		return m
	}
	for _, t := range f.tasks {
		o, ok := f.ledger.output(t.path)
		if !ok {
			continue
		}
		for _, p := range o.Prefixes {
			if p.File == fs.path && p.End > from {
				m[p.End] = p.SHA256
			}
		}
	}
	return m
}

// dealer gives the blocks of one file to the tasks that want them.
type dealer struct {
	f       *fetcher
	fs      *fileState
	want    func(delivery) bool
	expect  map[int64]string
	inexact int64  // F32 values of this segment that BF16 can't hold
	narrow  []byte // scratch
}

func (d *dealer) deal(ctx context.Context, b block) error {
	end := b.off + int64(len(b.buf))
	if want := d.expect[end]; want != "" && b.prefix != "" && b.prefix != want {
		return &SourceError{File: d.fs.path, Want: want, Got: b.prefix, End: end}
	}
	if b.seg < 0 {
		return nil
	}
	seg := d.fs.segs[b.seg]
	for _, to := range seg.dst {
		if !d.want(to) {
			continue
		}
		if err := d.f.start(ctx, to.task); err != nil {
			return err
		}
		if err := d.deliver(ctx, b, seg, to); err != nil {
			return err
		}
	}
	return nil
}

// deliver writes a block to one task's spool, counts its exponents, and hands the task on when it is complete.
func (d *dealer) deliver(ctx context.Context, b block, seg segment, to delivery) error {
	p, rel := b.buf, b.off-seg.off
	if to.narrow {
		d.narrow, d.inexact = narrowF32(d.narrow, p, d.inexact)
		p, rel = d.narrow, rel/2
	}
	if n, err := to.task.spool.WriteAt(p, to.at+rel); err != nil {
		return fmt.Errorf("write spool: %w", err)
	} else if n < len(p) {
		return fmt.Errorf("write spool: %w", io.ErrShortWrite)
	}
	if to.unit != nil && to.unit.counter != nil {
		to.unit.counter.Add((to.at+rel-to.unit.at)/2, p)
	}
	if b.off+int64(len(b.buf)) == seg.end {
		if err := d.segmentEnd(b, seg, to); err != nil {
			return err
		}
	}
	if to.task.left.Add(-int64(len(p))) == 0 {
		return d.f.emit(ctx, to.task)
	}
	return nil
}

// segmentEnd records the prefix that the task has now seen, and refuses an F32 tensor that is not exact.
func (d *dealer) segmentEnd(b block, seg segment, to delivery) error {
	if to.narrow && d.inexact > 0 {
		return &InexactError{File: d.fs.path, Offset: seg.off, Values: d.inexact, Of: (seg.end - seg.off) / 4}
	}
	d.inexact = 0
	if to.last && b.prefix != "" {
		to.task.mu.Lock()
		to.task.prefixes = append(to.task.prefixes, Prefix{d.fs.path, seg.end, b.prefix})
		to.task.mu.Unlock()
	}
	return nil
}

// InexactError says that an F32 tensor does not fit BF16 without loss.
type InexactError struct {
	File       string
	Offset     int64
	Values, Of int64
}

func (e *InexactError) Error() string {
	return fmt.Sprintf("F32 tensor at offset %d of %s: %d of %d values are not exact in BF16", e.Offset, e.File, e.Values, e.Of)
}

// narrowF32 writes the upper halves of the F32 values in src to dst, which it may grow, and counts in inexact those
// whose lower half is not zero.
func narrowF32(dst, src []byte, inexact int64) ([]byte, int64) {
	if cap(dst) < len(src)/2 {
		dst = make([]byte, blockBytes/2)
	}
	dst = dst[:len(src)/2]
	for i := 0; i+4 <= len(src); i += 4 {
		if src[i]|src[i+1] != 0 {
			inexact++
		}
		dst[i/2], dst[i/2+1] = src[i+2], src[i+3]
	}
	return dst, inexact
}

// newCounters makes a counter for each unit of a task that DF11 may hold.
func newCounters(t *task) error {
	for _, u := range t.units {
		if u.Unholdable != "" {
			continue
		}
		c, err := encoder.NewCounter(u.sizes)
		if unsupported := (*encoder.UnsupportedError)(nil); errors.As(err, &unsupported) {
			u.Unholdable = string(unsupported.Reason)
			continue
		}
		if err != nil {
			return fmt.Errorf("unit %s: %w", u.Path, err)
		}
		u.counter = c
	}
	return nil
}
