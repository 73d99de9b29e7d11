package fetch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// blocksPerFile is how many blocks of a file are in memory: those being read, hashed, and
// scattered, and some between these steps.
const blocksPerFile = 6

// A Fetcher reads source files and fills the spools of tasks. Set its fields before Run, and leave
// them alone until Run returns.
type Fetcher struct {
	Source model.Source
	Model  *model.Model
	Tasks  []*Task
	Ledger *ledger.Ledger // says what is done, and records what has arrived for good
	Room   *spool.Room    // for spools
	// Parallel is how many files of a local source are read at once. From a Hub, it's always one.
	Parallel  int
	ByRange   bool // read only what is needed of every file
	Uncounted bool // outputs are made already, so don't count exponents
	Progress  *progress.Counters

	byOutput map[*spans.Output]*Task
	files    []*sourceFile
	complete chan<- *Task
	ahead    ahead
	readings readings
}

// Run reads what unfinished tasks still need, and sends each task as soon as it's complete.
func (f *Fetcher) Run(ctx context.Context, complete chan<- *Task) error {
	f.complete = complete
	f.byOutput = map[*spans.Output]*Task{}
	var outputs []*spans.Output
	for _, t := range f.Tasks {
		f.byOutput[t.Output] = t
		outputs = append(outputs, t.Output)
	}
	f.layOut(outputs)
	for _, t := range f.Tasks {
		if !t.Spooled(f.Model.Local) {
			f.holdInPlace(t)
		}
	}
	ready := slices.DeleteFunc(slices.Clone(f.Tasks),
		func(t *Task) bool { return !t.complete() || f.Ledger.Done(t.Path) })
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.sendReady(ctx, ready) })
	g.Go(func() error { return f.readFiles(ctx) })
	return g.Wait()
}

// readFiles reads one file after the other, or a few at once.
func (f *Fetcher) readFiles(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	f.ahead.ctx = ctx
	defer f.ahead.close()
	g.SetLimit(f.filesAtOnce())
	for _, file := range f.files {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return f.file(ctx, file) })
	}
	return g.Wait()
}

// filesAtOnce returns 1 if spools have to fill up in file order.
func (f *Fetcher) filesAtOnce() int {
	if !f.inPlace() {
		return 1
	}
	return max(1, f.Parallel)
}

// inPlace reports whether no output needs a spool.
func (f *Fetcher) inPlace() bool {
	return !slices.ContainsFunc(f.Tasks, func(t *Task) bool { return t.Spooled(f.Model.Local) })
}

// holdInPlace notes which tensors of a spool have nothing to wait for: the spool is the source file
// itself, and their exponents aren't counted.
func (f *Fetcher) holdInPlace(t *Task) {
	for x, u := range t.Tensors() {
		if u != nil && !f.Uncounted {
			continue
		}
		t.hold(x)
		// otherwise the pass that hashes the file counts these bytes
		if f.files[x.File].byRange && !f.Ledger.Done(t.Path) {
			f.Progress.Fetched.Add(x.Length)
		}
	}
}

// sendReady sends the tasks that don't wait for any byte: an empty remainder, a task that an
// earlier run has fetched, or a task that only copies tensors of local files.
func (f *Fetcher) sendReady(ctx context.Context, ready []*Task) error {
	for _, t := range ready {
		if err := f.open(ctx, t); err != nil {
			return err
		}
		if err := streams.Send(ctx, f.complete, t); err != nil {
			return err
		}
	}
	return nil
}

// open creates the spool and the counters of a task, once. It waits while the budget for spools is
// used up.
func (f *Fetcher) open(ctx context.Context, t *Task) error {
	t.open.Do(func() {
		if !f.Uncounted {
			if t.openErr = t.count(); t.openErr != nil {
				return
			}
		}
		if t.Spooled(f.Model.Local) {
			t.Spool, t.openErr = f.Room.New(ctx, t.Output)
		} else {
			t.Spool = inPlaceSpool(f.Source, t.Output)
		}
	})
	return t.openErr
}

// inPlaceSpool returns a spool that reads an output's bytes from local source files.
func inPlaceSpool(src model.Source, o *spans.Output) *spool.Spool {
	var sections []*io.SectionReader
	for t := range o.Tensors() {
		sections = append(sections, io.NewSectionReader(src.Local(t.File), t.Offset, t.Length))
	}
	return spool.InPlace(sections)
}

// file reads one file. If its bytes can be read again at any time, hashing is a separate pass.
// Hashing a file is sequential and takes longer than anything else done with its bytes, and no
// output waits for it.
func (f *Fetcher) file(ctx context.Context, file *sourceFile) error {
	switch {
	case file.byRange:
		return f.ranges(ctx, file)
	case f.inPlace():
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return f.whole(ctx, file, nothing) })
		g.Go(func() error { return f.ranges(ctx, file) })
		return g.Wait()
	}
	return f.whole(ctx, file, (&scatterer{Fetcher: f, file: file}).scatter)
}

// whole reads all of a file in order, and records its hash if the hash is right.
func (f *Fetcher) whole(ctx context.Context, file *sourceFile, use use) error {
	h := sha256.New()
	if f.Model.Local {
		use = f.noted(file, use)
	}
	if err := f.pass(ctx, stretch{file, h, 0, file.Size}, use); err != nil {
		return err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if file.SHA256 != "" && sum != file.SHA256 {
		return model.OtherHash(file.Path, sum, file.SHA256)
	}
	if err := f.Source.Unchanged(file.Index); err != nil {
		return err
	}
	f.Ledger.AddFile(ledger.File{Path: file.Path, Integrity: metadata.Streamed, SHA256: sum})
	return nil
}

// use does something with the blocks of a pass, in order.
type use func(context.Context, block) error

// nothing does nothing with blocks that are only hashed.
func nothing(context.Context, block) error { return nil }

// needs reports whether an unfinished task lacks the tensor of a delivery.
func (f *Fetcher) needs(d spans.Delivery) bool {
	return !f.Ledger.Done(d.Output.Path) && !f.byOutput[d.Output].Holds(d.At)
}

// ranges reads only the segments that are needed. It reads neighbors closer than a block in one go.
func (f *Fetcher) ranges(ctx context.Context, file *sourceFile) error {
	needed := func(s spans.Segment) bool { return slices.ContainsFunc(s.To, f.needs) }
	for i := 0; i < len(file.segments); {
		if !needed(file.segments[i]) {
			i++
			continue
		}
		from, end := file.segments[i].Off, file.segments[i].End
		for i++; i < len(file.segments) && needed(file.segments[i]) &&
			file.segments[i].Off-end < streams.BlockBytes; i++ {
			end = file.segments[i].End
		}
		s := &scatterer{Fetcher: f, file: file}
		if err := f.pass(ctx, stretch{file, nil, from, end}, s.scatter); err != nil {
			return err
		}
	}
	return nil
}

// pass reads a stretch, hashes it, and calls use for every block, all at the same time. No pass is
// faster than one core hashes, but the other steps need not make it slower.
func (f *Fetcher) pass(ctx context.Context, x stretch, use use) error {
	// the source uses this ctx, too, so a scatterer that fails ends a read that waits
	g, ctx := errgroup.WithContext(ctx)
	r, err := f.stream(ctx, x)
	if err != nil {
		g.Go(func() error { return &model.ReadError{File: x.file.Path, Err: err} })
		return g.Wait()
	}
	defer r.Close()
	// if another pass hashes the file, its tensors count there
	counted, end := f.Progress.Arriving(r, x.hash != nil || x.file.byRange)
	defer end()
	g.Go(func() error { return f.openNext(ctx, x, r) })
	nBlocks := blocksPerFile
	if f.inPlace() { // two passes share them
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
		return x.read(ctx, counted, f.Progress, free, read)
	})
	g.Go(func() error {
		defer close(hashed)
		return x.sum(ctx, f.Progress, read, hashed)
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
	err = g.Wait()
	if errors.Is(err, io.ErrUnexpectedEOF) { // someone may have cut a local file short
		err = cmp.Or(f.Source.Unchanged(x.file.Index), err)
	}
	return err
}

// Close closes the spools that are left after Run. Those that outlive the process stay for the next
// run.
func (f *Fetcher) Close() (err error) {
	for _, t := range f.Tasks {
		if t.Spool != nil {
			err = errors.Join(err, t.Spool.Close())
		}
	}
	return err
}
