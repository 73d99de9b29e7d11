package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// blocksPerFile is how many blocks of a file are in memory: those that are read, hashed and scattered, and some between them.
const blocksPerFile = 6

// A Fetcher reads source files and fills the spools of tasks. Its fields are set before Run and belong to it until Run
// returns.
type Fetcher struct {
	Source model.Source
	Tasks  []*Task
	Files  []*File
	Ledger *ledger.Ledger // says what is done, and records what arrived for good
	Room   *spool.Room    // for spools
	// Parallel is the number of files that are read at once if the source is local; from a Hub it is one.
	Parallel  int
	DropCache bool // pages of a local source are not needed again
	Progress  *progress.Counters

	byOutput  map[*spans.Output]*Task
	complete  chan<- *Task
	hashLater bool // see hashBeside
}

// Run reads what unfinished tasks still need and sends each task as soon as it is complete.
func (f *Fetcher) Run(ctx context.Context, complete chan<- *Task) error {
	f.complete = complete
	f.byOutput = map[*spans.Output]*Task{}
	for _, t := range f.Tasks {
		f.byOutput[t.Output] = t
	}
	f.hashBeside()
	if err := f.sendComplete(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(f.filesAtOnce())
	for _, file := range f.Files {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return f.file(ctx, file) })
	}
	return g.Wait()
}

// filesAtOnce is one where spools have to fill up in file order.
func (f *Fetcher) filesAtOnce() int {
	if !f.inPlace() {
		return 1
	}
	return max(1, f.Parallel)
}

// inPlace reports whether no output needs a spool.
func (f *Fetcher) inPlace() bool {
	return !slices.ContainsFunc(f.Tasks, func(t *Task) bool { return !InPlace(f.Source, t.Output) })
}

// hashBeside decides to hash files in a pass of their own. The hash of a file is one chain of steps, which takes longer than
// anything else does with its bytes. Where the bytes can be read again at any time, outputs need not wait for it: they are
// converted and checked meanwhile, and only their names wait (see Task.Prefixes).
func (f *Fetcher) hashBeside() {
	f.hashLater = f.inPlace() && !slices.ContainsFunc(f.Files, func(x *File) bool { return x.ByRange })
	if !f.hashLater {
		return
	}
	for _, t := range f.Tasks {
		if n := t.left.Load(); n > 0 {
			t.unhashed.Store(n)
			t.hashed = make(chan struct{})
		}
	}
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
	if _, final := f.Ledger.Final(file.Path); final && first == file.Size {
		f.Progress.Fetched.Add(file.Size)
		return nil
	}
	h, from := f.Ledger.Checkpoint(file.Path, first).Hash()
	f.Progress.Fetched.Add(from)
	if from < file.Size {
		if err := f.stream(ctx, stretch{file, h, from, file.Size}, f.needs); err != nil {
			return err
		}
	}
	return file.finish(hex.EncodeToString(h.Sum(nil)))
}

// needs reports whether an unfinished task lacks the tensor of a delivery.
func (f *Fetcher) needs(d spans.Delivery) bool {
	return !f.Ledger.Done(d.Output.Path) && !f.byOutput[d.Output].holds(d.At)
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
		if err := f.stream(ctx, stretch{file, nil, from, end}, needs); err != nil {
			return err
		}
	}
	return nil
}

// stream reads a stretch and scatters it.
func (f *Fetcher) stream(ctx context.Context, x stretch, needs func(spans.Delivery) bool) error {
	s := &scatterer{Fetcher: f, file: x.file, needs: needs, hashed: x.hash != nil, expected: f.expected(x)}
	if !f.hashLater || x.hash == nil {
		return f.pass(ctx, x, s.scatter)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.pass(ctx, x, s.bindLater) })
	g.Go(func() error {
		if f.DropCache { // what was copied would leave the cache before it is hashed
			return f.ranges(ctx, x.file, needs)
		}
		if err := f.sendCopied(ctx, x.file, needs); err != nil {
			return err
		}
		return f.ranges(ctx, x.file, func(d spans.Delivery) bool { return d.Unit != nil && needs(d) })
	})
	return g.Wait()
}

// sendCopied takes the tensors of a file that are copied as arrived: they have no exponents to count. An output that consists
// of such tensors is sent when the hashes of all its files have begun, so it waits for nothing that waits for it.
func (f *Fetcher) sendCopied(ctx context.Context, file *File, needs func(spans.Delivery) bool) error {
	for _, seg := range file.Segments {
		for _, d := range seg.To {
			if d.Unit != nil || !needs(d) {
				continue
			}
			t := f.byOutput[d.Output]
			if err := f.open(ctx, t); err != nil {
				return err
			}
			if err := f.arrived(ctx, t, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass reads a stretch, through its hash, and calls use for every block. All three go on side by side: no pass is faster than one
// core hashes, but what goes before and after need not make it slower.
func (f *Fetcher) pass(ctx context.Context, x stretch, use func(context.Context, block) error) error {
	g, ctx := errgroup.WithContext(ctx) // the source's too: a scatterer that fails ends a read that waits
	r, err := f.Source.Stream(ctx, x.file.Index, x.from, x.end)
	if err != nil {
		g.Go(func() error { return &Error{x.file.Path, err} })
		return g.Wait()
	}
	defer r.Close()
	nBlocks := blocksPerFile
	if f.hashLater { // two passes share them
		nBlocks /= 2
	}
	free := make(chan []byte, nBlocks)
	read, hashed := make(chan block, nBlocks), make(chan block, nBlocks) // neither is ever full
	for range nBlocks {
		b := streams.GetBlock()
		defer streams.PutBlock(b)
		free <- b[:]
	}
	g.Go(func() error {
		defer close(read)
		return (&reader{stretch: x, r: timedReader{r, f.Progress}, free: free}).run(ctx, read)
	})
	g.Go(func() error {
		defer close(hashed)
		return (&hasher{h: x.hash, progress: f.Progress}).run(ctx, read, hashed)
	})
	g.Go(func() error {
		for b := range hashed {
			if err := use(ctx, b); err != nil {
				return err
			}
			free <- b.buf[:streams.BlockBytes]
		}
		return nil
	})
	return g.Wait()
}

// Sum gives the sha256 of a weight file of size bytes, which is read and hashed side by side. It is for files of which nobody
// publishes one, such as local files. An error names the file by its path.
func Sum(ctx context.Context, src model.Source, file int, path string, size int64) (string, error) {
	f := Fetcher{Source: src, Progress: &progress.Counters{}}
	h := sha256.New()
	onward := func(context.Context, block) error { return nil }
	if err := f.pass(ctx, stretch{&File{Index: file, Path: path, Size: size}, h, 0, size}, onward); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
