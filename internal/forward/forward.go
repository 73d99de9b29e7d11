// Package forward takes the bytes of a source to its outputs: it has them fetched into spools and
// encoded, compares what is stored with the spools, names what is equal, and publishes it. Where
// outputs are stored already, it only compares. It decides neither what is to be made nor what
// comes after a failure. Make and Compare are its doors; other packages use none of those below it.
package forward

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward/compare"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// GPU is a second decoder.
type GPU = compare.GPU

// Errors that say what differs.
type (
	// TensorError names an element of a tensor that is stored unchanged and differs from the
	// source.
	TensorError = compare.TensorError
	// AliasError names two tensors that the model ties and that differ in the source.
	AliasError = compare.AliasError
)

// ByCPU says what a comparison on the CPU, or the hash of a rebuilt file, verifies about an output.
// coded reports whether a unit is stored as DF11.
func ByCPU(o *spans.Output, coded func(unitPath string) bool) metadata.Verification {
	return compare.ByCPU(o, coded)
}

// NewBudget makes a budget of disk; a limit of 0 is none.
func NewBudget(limit int64) *spool.Budget { return spool.NewBudget(limit) }

// maker is one call of Make.
type maker struct {
	*Job
	fetcher  *fetch.Fetcher
	comparer *compare.Comparer
	waiting  *waitingFiles
}

// Make makes the outputs that are not done and publishes them. After an error, the same call goes
// on with what the ledger has and with the spools that are kept.
func Make(ctx context.Context, job *Job) error {
	_, shares, err := job.divide()
	if err != nil {
		return err
	}
	m := &maker{Job: job, fetcher: job.fetcher(shares)}
	defer m.close()
	// One core is left to the hash of the same file, a single chain of steps that takes as long.
	m.comparer = &compare.Comparer{Workers: max(1, job.Memory.Workers-1), GPU: job.GPU,
		Strict: true, Progress: job.Progress}
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

// close closes the spools that are left, of which kept ones stay for the next run.
func (m *maker) close() {
	if err := errors.Join(m.fetcher.Leave(), m.fetcher.Room.Close()); err != nil {
		m.Log.Warn("a spool can't be closed", "err", err)
	}
}

// run makes the output of every task. Each stage is a goroutine, or a few, that takes what the
// stage before sends and closes the channel to the next one when it ends; the first error ends all
// of them.
func (m *maker) run(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	complete := make(chan *fetch.Task, budget.OutputsAhead) // all source bytes are in the spool
	g.Go(func() error {
		defer close(complete)
		return m.fetcher.Run(gctx, complete)
	})
	drafts := make(chan *draft) // written, as the source bytes say
	g.Go(func() error {
		defer close(drafts)
		return m.encodeAll(gctx, complete, drafts)
	})
	// decoded again from the stored bytes and compared; the hash is under way
	equal := make(chan compared)
	g.Go(func() error {
		defer close(equal)
		return m.compareAll(gctx, drafts, equal)
	})
	finished := make(chan ledger.Output) // hashed, forced to disk, renamed, in the journal
	var naming sync.WaitGroup
	naming.Add(1 + budget.Finalizers)
	g.Go(func() error {
		defer naming.Done()
		return streams.Send(gctx, finished, m.Leftovers...)
	})
	for range budget.Finalizers { // one file may wait for its hash, another for the disk
		g.Go(func() error {
			defer naming.Done()
			return m.nameAll(gctx, equal, finished)
		})
	}
	g.Go(func() error {
		defer close(finished)
		naming.Wait()
		return nil
	})
	g.Go(func() error { return m.publishAll(gctx, finished) })

	err := g.Wait()
	for c := range equal { // after an error nobody takes it
		c.discard()
	}
	return err
}
