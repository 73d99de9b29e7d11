package forward

import (
	"context"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/pagecache"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/internal/target"
)

// A publishStage uploads finished outputs and commits them in batches. Without a repo it only lets go of cached pages.
type publishStage struct {
	repo      *target.Repo
	folder    *target.Folder
	ledger    *ledger.Ledger
	waiting   *WaitingFiles
	leftovers []ledger.Output // that an earlier run finished and did not publish
	wait      time.Duration   // of an uploaded output for its commit
	dropCache bool
	progress  *progress.Counters
}

func (w *Work) publishStage() *publishStage {
	m := w.Make
	return &publishStage{
		repo: m.Repo, folder: m.Folder, ledger: m.Ledger, waiting: m.Waiting, leftovers: m.Leftovers, wait: m.CommitWait,
		dropCache: m.DropCache, progress: w.Progress,
	}
}

// run uploads several outputs at a time, and goes on with it while a batch is committed.
func (s *publishStage) run(ctx context.Context, finished <-chan ledger.Output) error {
	g, ctx := errgroup.WithContext(ctx)
	queue, uploaded := make(chan ledger.Output), make(chan ledger.Output)
	g.Go(func() error {
		defer close(queue)
		return s.queue(ctx, finished, queue)
	})
	g.Go(func() error {
		defer close(uploaded)
		uploads, ctx := errgroup.WithContext(ctx)
		for range budget.Uploads {
			uploads.Go(func() error { return s.uploadAll(ctx, queue, uploaded) })
		}
		return uploads.Wait()
	})
	g.Go(func() error { return commitBatches(ctx, s.wait, uploaded, s.commit) })
	return g.Wait()
}

// queue passes on what earlier runs have left, then what is finished.
func (s *publishStage) queue(ctx context.Context, finished <-chan ledger.Output, queue chan<- ledger.Output) error {
	for _, o := range s.leftovers {
		if err := streams.Send(ctx, queue, o); err != nil {
			return err
		}
	}
	for o := range finished {
		if err := streams.Send(ctx, queue, o); err != nil {
			return err
		}
	}
	return nil
}

func (s *publishStage) uploadAll(ctx context.Context, queue <-chan ledger.Output, uploaded chan<- ledger.Output) error {
	for o := range queue {
		if s.repo != nil {
			if err := s.upload(ctx, o); err != nil {
				return err
			}
			if err := streams.Send(ctx, uploaded, o); err != nil {
				return err
			}
		}
		if s.dropCache && s.folder.Stays {
			pagecache.DropFile(s.folder.Path(o.Path))
		}
	}
	return nil
}

// upload sends one output, and removes it here if it need not stay.
func (s *publishStage) upload(ctx context.Context, o ledger.Output) error {
	if o.Uploaded && !s.folder.Stays { // by an earlier run, which a kill may have kept from removing the file
		return s.folder.Remove(o.Path)
	}
	if err := s.send(ctx, o); err != nil || s.folder.Stays {
		return err
	}
	if err := s.ledger.Uploaded(o.Path); err != nil {
		return err
	}
	if err := s.folder.Remove(o.Path); err != nil {
		return err
	}
	s.waiting.uploaded(o)
	return nil
}

// send uploads a file and closes it: Windows does not remove an open one.
func (s *publishStage) send(ctx context.Context, o ledger.Output) error {
	f, err := os.Open(s.folder.Path(o.Path))
	if err != nil {
		return err
	}
	defer f.Close()
	r, end := s.progress.Uploading(f, o.Size)
	err = s.repo.Upload(ctx, o, r)
	end(err == nil)
	return err
}

// CommitAge is how long an uploaded output waits for its commit. A kill loses what waits, and the Hub takes about 128 commits
// an hour: so a repo gets one a minute, and one more for every 50 files. Parts share them.
const CommitAge = time.Minute

// commitBatches commits all uploaded outputs once the first one has waited for the given time, and at the end, 50 at most with
// one commit, as the Hub advises. One commit is under way at a time.
func commitBatches(ctx context.Context, wait time.Duration, uploaded <-chan ledger.Output, commit func(context.Context, []ledger.Output) error) error {
	var waiting []ledger.Output
	var committing chan error // nil: no commit is under way
	age := time.NewTimer(wait)
	age.Stop()
	defer age.Stop()
	for due := false; ; {
		select {
		case o, ok := <-uploaded:
			if !ok {
				uploaded, due = nil, true
				break
			}
			if waiting = append(waiting, o); len(waiting) == 1 {
				age.Reset(wait)
			}
		case <-age.C:
			due = true
		case err := <-committing:
			if committing = nil; err != nil {
				return err
			}
		}
		if ctx.Err() == nil && committing == nil && len(waiting) > 0 && due {
			n := min(len(waiting), budget.CommitFiles)
			batch := waiting[:n:n]
			waiting = waiting[n:]
			due = uploaded == nil || len(waiting) > 0
			committing = make(chan error, 1)
			go func() { committing <- commit(ctx, batch) }()
		}
		if uploaded == nil && committing == nil {
			return context.Cause(ctx)
		}
	}
}

// commit commits a batch with the journal that lists it.
func (s *publishStage) commit(ctx context.Context, batch []ledger.Output) error {
	if err := s.repo.Commit(ctx, batch, s.ledger); err != nil {
		return err
	}
	s.ledger.Committed(batch)
	return nil
}
