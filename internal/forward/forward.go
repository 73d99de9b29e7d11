// Package forward takes the bytes of a source to its outputs: it has them fetched into spools and
// encoded, compares what is stored with the spools, names what is equal, and publishes it. Where
// outputs are stored already, it only compares. It decides neither what is to be made nor what
// comes after a failure.
package forward

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward/compare"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/internal/target"
)

// Work is one way forward. The spools that it leaves open after an error are in the fetcher's
// tasks.
type Work struct {
	Fetcher  *fetch.Fetcher
	Comparer *compare.Comparer

	Stored   compare.Stored  // has every output already: nothing is made
	Equal    []*spans.Output // of Stored: nothing differs
	GPUUnits int             // of Equal, that a GPU has compared as well

	Make *Making // nil with Stored
}

// Making says where outputs are made and where they go.
type Making struct {
	Folder     *target.Folder
	Repo       *target.Repo // nil: nothing is published
	Waiting    *WaitingFiles
	Leftovers  []ledger.Output // of earlier runs, which no commit names yet
	Workers    int
	CommitWait time.Duration // of an uploaded output for its commit
	Log        *slog.Logger
}

// Run makes or compares the output of every task. Each stage is a goroutine, or a few, that takes
// what the stage before sends and closes the channel to the next one when it ends; the first error
// ends all of them.
func (w *Work) Run(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	complete := make(chan *fetch.Task, budget.OutputsAhead) // all source bytes are in the spool
	g.Go(func() error {
		defer close(complete)
		return w.Fetcher.Run(gctx, complete)
	})
	if w.Stored != nil {
		g.Go(func() error { return w.compareStored(gctx, complete) })
		return g.Wait()
	}
	drafts := make(chan *draft) // written, as the source bytes say
	g.Go(func() error {
		defer close(drafts)
		return w.encodeAll(gctx, complete, drafts)
	})
	// decoded again from the stored bytes and compared; the hash is under way
	equal := make(chan compared)
	g.Go(func() error {
		defer close(equal)
		return w.compareAll(gctx, drafts, equal)
	})
	finished := make(chan ledger.Output) // hashed, forced to disk, renamed, in the journal
	var naming sync.WaitGroup
	naming.Add(1 + budget.Finalizers)
	g.Go(func() error {
		defer naming.Done()
		return streams.Send(gctx, finished, w.Make.Leftovers...)
	})
	for range budget.Finalizers { // one file may wait for its hash, another for the disk
		g.Go(func() error {
			defer naming.Done()
			return w.nameAll(gctx, equal, finished)
		})
	}
	g.Go(func() error {
		defer close(finished)
		naming.Wait()
		return nil
	})
	g.Go(func() error { return w.publishAll(gctx, finished) })

	err := g.Wait()
	for c := range equal { // after an error nobody takes it
		c.discard()
	}
	return err
}
