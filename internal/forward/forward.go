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
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Means are what a run works with.
type Means = compare.Means

// Errors that say what differs.
type (
	// TensorError names the first different byte of a tensor that is stored unchanged.
	TensorError = compare.TensorError
	// AliasError names two tensors that the model ties and that differ in the source.
	AliasError = spans.AliasError
)

// ByCPU returns what a comparison on the CPU, or the hash of a rebuilt file, verifies about an
// output.
var ByCPU = compare.ByCPU

// maker is one call of Make.
type maker struct {
	*Job
	fetcher  *fetch.Fetcher
	comparer *compare.Comparer
	waiting  *spool.Budget // for finished files, until they're uploaded
}

// Make makes and publishes the outputs that aren't done. After an error, call it again: it goes on
// with what the ledger lists and with the spools that were kept.
func Make(ctx context.Context, job *Job) error {
	shares, err := job.Divide()
	if err != nil {
		return err
	}
	m := &maker{Job: job, fetcher: job.fetcher(shares.Shares)}
	defer func() { _ = m.fetcher.Close() }() // kept spools stay for the next run
	m.comparer = &compare.Comparer{Means: job.Means, Strict: true}
	// Leave one core for hashing the file, which is sequential and takes as long.
	m.comparer.Workers = max(1, job.Workers-1)
	if job.Folder.Stays {
		shares.Outputs = 0 // files that stay cost nothing
	}
	m.waiting = spool.NewBudget(shares.Outputs)
	job.countProgress()
	if err := m.reopenSpools(ctx, shares.begun); err != nil {
		return err
	}
	if err := job.Folder.Save(); err != nil {
		return err
	}
	return m.run(ctx)
}

// run publishes what earlier runs left, which frees its disk. Then it makes the output of every
// task, in stages that hand it on. The first error ends all of them.
func (m *maker) run(ctx context.Context) error {
	publishes := m.To != nil && !m.Wait // else nothing is published now
	if publishes {
		if err := m.publishLeftovers(ctx); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	complete := fetched(ctx, g, m.fetcher)
	// Each file is encoded in parallel, but one after the other.
	drafts := stage(ctx, g, 1, 0, complete, m.encode, (*draft).discard)
	equal := stage(ctx, g, 1, 0, drafts, m.compare, compared.discard)
	// One file may wait for its hash, another for the disk.
	finished := stage(ctx, g, budget.Finalizers, 0, equal, m.name, stays)
	if publishes {
		m.publish(ctx, g, finished, m.uploadMade)
		return g.Wait()
	}
	for range finished {
	}
	return g.Wait()
}

// fetched starts a fetcher, and returns the tasks whose source bytes are all in their spools.
func fetched(ctx context.Context, g *errgroup.Group, f *fetch.Fetcher) <-chan *fetch.Task {
	complete := make(chan *fetch.Task, budget.OutputsAhead)
	g.Go(func() error {
		defer close(complete)
		return f.Run(ctx, complete)
	})
	return complete
}

// stays leaves a finished file where it is, for the next run.
func stays(ledger.Output) {}

// stage starts workers that apply f to all that in sends, and returns a channel with the results,
// which holds up to ahead of them. It closes the channel when the workers have ended, each at the
// first error. A result that the channel doesn't take any more goes to drop.
func stage[A, B any](ctx context.Context, g *errgroup.Group, workers, ahead int, in <-chan A,
	f func(context.Context, A) (B, error), drop func(B)) <-chan B {
	out := make(chan B, ahead)
	var working sync.WaitGroup
	for range workers {
		working.Add(1)
		g.Go(func() error {
			defer working.Done()
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
