package forward

import (
	"context"
	"errors"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/forward/compare"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// Comparison says which stored outputs Compare compares, and with which source.
type Comparison struct {
	Source  model.Source
	Model   *model.Model
	Outputs []*spans.Output
	Stored  *model.DF11 // has all of the outputs
	WorkDir string      // for the spools of a remote source
	Means
}

// Compare compares every weight and every copied tensor of stored outputs with the source. It ends
// at the first difference; for the errors, see compare.Comparer. It returns the outputs that are
// equal, and what it verified about them.
func Compare(ctx context.Context, c Comparison) (equal []*spans.Output,
	verified []metadata.Verification, err error) {
	c.Progress.Verified.Store(0)
	c.Progress.Outputs.Store(0)
	c.Progress.SourceBytes.Store(spans.ProvedBytes(c.Outputs))
	c.Progress.OutputFiles.Store(int64(len(c.Outputs)))
	c.Progress.Expect(progress.Read, progress.Verify)
	dir, err := c.openDir()
	if err != nil {
		return nil, nil, err
	}
	if dir != nil {
		defer dir.Close()
	}
	room := &spool.Room{Dir: dir, Disk: spool.NewBudget(0), Memory: spool.NewBudget(0)}
	fetcher := &fetch.Fetcher{
		Source: c.Source, Model: c.Model, Tasks: fetch.NewTasks(c.Outputs),
		Ledger: ledger.New("", false), Room: room, Uncounted: true, Progress: c.Progress,
	}
	defer func() { _ = fetcher.Close() }()
	comparer := &compare.Comparer{Means: c.Means}
	if c.Stored.Remote() {
		comparer.NearDir = dir
	}
	g, gctx := errgroup.WithContext(ctx)
	complete := fetched(gctx, g, fetcher)
	g.Go(func() error {
		for t := range complete {
			more, err := output(gctx, comparer, fetcher, t, c.Stored)
			if err := errors.Join(err, t.Spool.Release()); err != nil {
				return err
			}
			if err := t.Unchanged(c.Source); err != nil {
				return err
			}
			equal, verified = append(equal, t.Output), metadata.AddVerified(verified, more)
			c.Progress.Outputs.Add(1)
		}
		return nil
	})
	err = g.Wait()
	return equal, verified, err
}

// openDir opens the work folder. It returns nil if neither spools nor a remote model's units need
// one.
func (c *Comparison) openDir() (*os.Root, error) {
	spooled := func(o *spans.Output) bool { return o.Spooled(c.Model.Local) }
	if c.GPU == nil && !slices.ContainsFunc(c.Outputs, spooled) {
		return nil, nil
	}
	if err := os.MkdirAll(c.WorkDir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(c.WorkDir)
	if err == nil {
		if err = disk.CheckOwner(root); err != nil {
			err = &disk.Error{Kind: disk.Work, Folder: c.WorkDir, Err: errors.Join(err, root.Close())}
			root = nil
		}
	}
	return root, err
}
