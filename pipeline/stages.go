package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/pagecache"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// convertAll runs the stages until every task is done.
func (r *run) convertAll(ctx context.Context) error {
	if err := r.reset(ctx); err != nil {
		r.keepSpools()
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	ready, made, sealed := make(chan *task, tasksAhead), make(chan *built), make(chan Output)
	save := newSaver(cmp.Or(r.SpoolSync, defaultSpoolSync))
	g.Go(func() error {
		defer save.end()
		return r.fetcher(ready, save).run(gctx)
	})
	g.Go(func() error { return r.noteLoop(save) })
	g.Go(func() error { return r.saveLoop(save) })
	lull := make(chan struct{})
	g.Go(func() error { return r.convertLoop(gctx, ready, made, lull) })
	seal := func() error { return r.sealLoop(gctx, made, r.pairing(lull), sealed) }
	r.pool(g, func() { close(sealed) }, seal, func() error { return r.resend(gctx, sealed) })
	for range r.Uploads {
		g.Go(func() error { return r.publishLoop(gctx, sealed) })
	}
	if err := g.Wait(); err != nil {
		r.keepSpools()
		return err
	}
	if err := r.checkStrict(); err != nil {
		return err
	}
	if r.pub != nil {
		return r.pub.flush(ctx)
	}
	return nil
}

// pool runs the workers in the group and calls done after the last one has ended.
func (r *run) pool(g *errgroup.Group, done func(), workers ...func() error) {
	var wg sync.WaitGroup
	for _, work := range workers {
		wg.Add(1)
		g.Go(func() error {
			defer wg.Done()
			return work()
		})
	}
	g.Go(func() error {
		wg.Wait()
		done()
		return nil
	})
}

// resend hands on outputs that an earlier run finished here but did not publish.
func (r *run) resend(ctx context.Context, sealed chan<- Output) error {
	if r.pub == nil {
		return nil
	}
	for _, o := range r.unpublished {
		select {
		case sealed <- o:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (r *run) fetcher(ready chan<- *task, save *saver) *fetcher {
	f := &fetcher{
		src: r.Source, model: r.Model, tasks: r.tasks, files: r.files, ledger: r.ledger, ready: ready,
		begin: r.begin, arrived: save.arrived, byTask: r.byTask, parallel: 1, progress: r.Progress,
	}
	if _, local := r.Source.(localFiles); local && !slices.ContainsFunc(r.tasks, (*task).narrows) {
		f.parallel = r.Workers // spools fill in file order, so only a source that needs none is read several files at once
	}
	return f
}

// begin gives a task its spool and its counters. It blocks while the disk budget is used up.
func (r *run) begin(ctx context.Context, t *task) error {
	if err := newCounters(t); err != nil {
		return err
	}
	if r.readsLocal(t) {
		s, err := localSpool(r.Source.(localFiles), t)
		if t.spool = s; r.DropCache && err == nil {
			t.spool = passing{s}
		}
		return err
	}
	if err := r.budgetOf(t).acquire(ctx, t.size); err != nil {
		return fmt.Errorf("spool for %s: %w", t.path, err)
	}
	s, err := r.newSpool(t)
	if err != nil {
		r.budgetOf(t).release(t.size)
		return err
	}
	t.spool = r.ownSpool(t, s)
	return nil
}

// readsLocal tells whether a task's source files are its spool.
func (r *run) readsLocal(t *task) bool {
	_, local := r.Source.(localFiles)
	return local && !t.narrows()
}

func (r *run) budgetOf(t *task) *budget {
	if t.inMemory {
		return r.memory
	}
	return r.spools
}

// ownSpool makes a spool give its budget back with itself.
func (r *run) ownSpool(t *task, s spool) spool {
	return budgeted{s, sync.OnceFunc(func() { r.budgetOf(t).release(t.size) })}
}

// newSpool makes room for a task's bytes. That of a Hub's file is kept if the run is killed: its etag pins it.
func (r *run) newSpool(t *task) (spool, error) {
	if t.inMemory {
		return newMemSpool(t.size)
	}
	if _, local := r.Source.(localFiles); local {
		return newFileSpool(r.store.state)
	}
	k, err := newKeptSpool(spoolPath(r.store.state, t), false)
	if err != nil {
		return nil, err
	}
	t.holds.keepIn(k, nil)
	return k, nil
}

// budgeted gives its budget back with the spool.
type budgeted struct {
	spool
	free func()
}

func (b budgeted) Release() error {
	err := b.spool.Release()
	b.free()
	return err
}

// localSpool reads a task's bytes where they are.
func localSpool(local localFiles, t *task) (*spanSpool, error) {
	var extents []extent
	var failed error
	t.eachTensor(func(x plan.Tensor, at int64, _ *taskUnit) {
		f, err := local.File(x.File)
		if err != nil {
			failed = err
		}
		extents = append(extents, extent{at: at, length: x.Length, r: f, off: x.Offset})
	})
	return newSpanSpool(extents), failed
}

// convertLoop converts task after task; it alone closes made. Tokens go to lull while there is nothing to convert.
func (r *run) convertLoop(ctx context.Context, ready <-chan *task, made chan<- *built, lull chan<- struct{}) error {
	defer close(made)
	c := &converter{create: r.create, free: r.free, workers: r.Workers, progress: r.Progress, gpu: r.GPU, strict: true}
	for t := range withLull(ready, lull) {
		b, err := c.convert(ctx, t)
		if err == nil {
			t.holds.forget()
			err = t.spool.Release()
		}
		if err != nil {
			if b != nil {
				b.file.Cleanup()
			}
			return fmt.Errorf("convert %s: %w", t.path, err)
		}
		select {
		case made <- b:
		case <-ctx.Done():
			b.file.Cleanup()
			return context.Cause(ctx)
		}
	}
	return nil
}

// withLull ranges over tasks, and offers tokens to lull while it waits for one.
func withLull(ready <-chan *task, lull chan<- struct{}) iter.Seq[*task] {
	return func(yield func(*task) bool) {
		for {
			select {
			case t, ok := <-ready:
				if !ok || !yield(t) {
					return
				}
			case lull <- struct{}{}:
			}
		}
	}
}

// create makes an output file; one that does not stay counts against the disk budget until it is uploaded.
func (r *run) create(ctx context.Context, t *task, size int64) (*atomicfile.File, error) {
	if !r.store.keep {
		if err := r.outputs.acquire(ctx, size); err != nil {
			return nil, err
		}
	}
	f, err := r.store.create(t.path, size)
	if err != nil {
		r.free(size)
	}
	return f, err
}

// free gives back the disk budget of an output that is gone.
func (r *run) free(size int64) {
	if !r.store.keep {
		r.outputs.release(size)
	}
}

// freeUploaded gives back what an output has taken of the disk.
func (r *run) freeUploaded(o Output) {
	b, leftover := r.charged[o.Path]
	if !leftover {
		b = r.outputs
	}
	if b != nil {
		b.release(o.Size)
	}
}

// publishLoop uploads sealed files and lets those go that need not stay.
func (r *run) publishLoop(ctx context.Context, sealed <-chan Output) error {
	for o := range sealed {
		if r.pub != nil {
			if err := r.upload(ctx, o); err != nil {
				return err
			}
		}
		if r.DropCache && r.store.keep {
			pagecache.DropFile(r.store.path(o.Path))
		}
	}
	return nil
}

func (r *run) upload(ctx context.Context, o Output) error {
	if o.Uploaded {
		return r.pub.putUploaded(ctx, o)
	}
	f, err := os.Open(r.store.path(o.Path))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.pub.put(ctx, o, f); err != nil {
		return err
	}
	if r.store.keep {
		return nil
	}
	r.freeUploaded(o)
	uploaded := o
	uploaded.Uploaded = true
	r.ledger.add(uploaded)
	return errors.Join(os.Remove(f.Name()), r.saveJournal())
}
