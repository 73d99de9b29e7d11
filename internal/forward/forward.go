// Package forward takes the bytes of a source to its outputs. It fetches them into spools, encodes
// them, compares what is stored with the spools, names equal files, and publishes them. If outputs
// are stored already, it only compares. It decides neither what to make nor what to do after a
// failure. Make and Compare are its entry points. Only forward imports the packages below it.
package forward

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward/compare"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Means are what a run works with.
type Means = compare.Means

// Errors that say what differs.
type (
	// TensorError names the first different element of a tensor that is stored unchanged.
	TensorError = compare.TensorError
	// AliasError names two tensors that the model ties and that differ in the source.
	AliasError = compare.AliasError
)

// ByCPU returns what a comparison on the CPU, or the hash of a rebuilt file, verifies about an
// output. coded reports whether a unit is stored as DF11.
func ByCPU(o *spans.Output, coded func(unitPath string) bool) metadata.Verification {
	return compare.ByCPU(o, coded)
}

// maker is one call of Make.
type maker struct {
	*Job
	fetcher  *fetch.Fetcher
	comparer *compare.Comparer
	waiting  *waitingFiles
}

// Make makes and publishes the outputs that aren't done. After an error, call it again: it goes on
// with what the ledger lists and with the spools that were kept.
func Make(ctx context.Context, job *Job) error {
	_, shares, err := job.divide()
	if err != nil {
		return err
	}
	m := &maker{Job: job, fetcher: job.fetcher(shares)}
	defer m.close()
	m.comparer = &compare.Comparer{Means: job.Means, Strict: true}
	// Leave one core for hashing the file, which is sequential and takes as long.
	m.comparer.Workers = max(1, job.Workers-1)
	m.waiting = newWaitingFiles(job.Folder.Stays, shares.Outputs, m.fetcher.Room.Disk,
		job.Leftovers)
	job.countProgress()
	if err := m.takeUpSpools(ctx); err != nil {
		return err
	}
	if err := job.Folder.Save(job.Ledger); err != nil {
		return err
	}
	return m.run(ctx)
}

// close closes the remaining spools. Kept ones stay for the next run.
func (m *maker) close() {
	if err := m.fetcher.Leave(); err != nil {
		m.Log.Warn("a spool can't be closed", "err", err)
	}
}

// run makes the output of every task, in stages that hand it on. The first error ends all of them.
func (m *maker) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	complete := make(chan *fetch.Task, budget.OutputsAhead) // all source bytes are in the spool
	g.Go(func() error {
		defer close(complete)
		return m.fetcher.Run(ctx, complete)
	})
	// Each file is encoded in parallel, but one after the other.
	drafts := stage(ctx, g, 1, complete, m.encode, (*draft).discard)
	equal := stage(ctx, g, 1, drafts, m.compare, compared.discard)
	// One file may wait for its hash, another for the disk.
	finished := stage(ctx, g, budget.Finalizers, equal, m.name, stays, m.Leftovers...)
	if m.Repo == nil || m.Wait { // nothing is published now
		for range finished {
		}
		return g.Wait()
	}
	uploaded := stage(ctx, g, budget.Uploads, finished, m.upload, stays)
	g.Go(func() error { return commitBatches(ctx, m.CommitWait, uploaded, m.commit) })
	return g.Wait()
}

// stays leaves a finished file where it is, for the next run.
func stays(ledger.Output) {}

// stage starts workers that apply f to all that in sends, and returns a channel with the results and
// with what is given as first. It closes the channel when the workers have ended, each at the first
// error. A result that the next stage doesn't take any more goes to drop.
func stage[A, B any](ctx context.Context, g *errgroup.Group, workers int, in <-chan A,
	f func(context.Context, A) (B, error), drop func(B), first ...B) <-chan B {
	out := make(chan B)
	var working sync.WaitGroup
	begin := func(work func() error) {
		working.Add(1)
		g.Go(func() error {
			defer working.Done()
			return work()
		})
	}
	begin(func() error { return streams.Send(ctx, out, first...) })
	for range workers {
		begin(func() error {
			for a := range in {
				b, err := f(ctx, a)
				if err != nil {
					return err
				}
				if err := streams.Send(ctx, out, b); err != nil {
					drop(b)
					return err
				}
			}
			return nil
		})
	}
	go func() {
		working.Wait()
		close(out)
	}()
	return out
}
