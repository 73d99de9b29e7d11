package forward

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// publishLeftovers uploads and commits what earlier runs finished.
func (m *maker) publishLeftovers(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	leftovers := make(chan ledger.Output, len(m.Leftovers))
	for _, o := range m.Leftovers {
		leftovers <- o
	}
	close(leftovers)
	m.publish(ctx, g, leftovers, m.upload)
	return g.Wait()
}

// publish starts to upload and commit finished outputs. Uploads go on during a commit.
func (m *maker) publish(ctx context.Context, g *errgroup.Group, finished <-chan ledger.Output,
	upload func(context.Context, ledger.Output) (ledger.Output, error)) {
	uploaded := make(chan ledger.Output, commitFiles)
	g.Go(func() error { return uploadAll(ctx, finished, uploaded, upload) })
	g.Go(func() error { return commitBatches(ctx, m.CommitWait, uploaded, m.commit) })
}

// uploadAll uploads files as they come, as many at once as budget.UploadBytes allows, and passes them
// on. At its end it closes the channel.
func uploadAll(ctx context.Context, finished <-chan ledger.Output, uploaded chan<- ledger.Output,
	upload func(context.Context, ledger.Output) (ledger.Output, error)) error {
	defer close(uploaded)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(budget.Uploads)
	room := semaphore.NewWeighted(budget.UploadBytes)
	for o := range finished {
		share := budget.UploadShare(o.Size)
		if room.Acquire(ctx, share) != nil {
			break
		}
		g.Go(func() error {
			o, err := upload(ctx, o)
			room.Release(share)
			if err != nil {
				return err
			}
			return streams.Send(ctx, uploaded, o)
		})
	}
	return g.Wait()
}

// uploadMade uploads an output that this run has made, and frees its share of the disk.
func (m *maker) uploadMade(ctx context.Context, o ledger.Output) (ledger.Output, error) {
	o, err := m.upload(ctx, o)
	if err == nil {
		m.waiting.Release(o.Size)
	}
	return o, err
}

// upload uploads one output, and removes it from the folder unless it stays.
func (m *maker) upload(ctx context.Context, o ledger.Output) (ledger.Output, error) {
	// an earlier run uploaded it; perhaps a kill kept it from removing the file
	if o.Uploaded && !m.Folder.Stays {
		return o, m.Folder.Remove(o.Path)
	}
	if err := m.send(ctx, o); err != nil || m.Folder.Stays {
		return o, err
	}
	if err := m.Ledger.Uploaded(o.Path); err != nil {
		return o, err
	}
	return o, m.Folder.Remove(o.Path)
}

// send uploads a file and closes it, because Windows can't remove an open file.
func (m *maker) send(ctx context.Context, o ledger.Output) error {
	f, err := m.Folder.Open(o.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, end := m.Progress.Uploading(f, o.Size)
	err = m.To.Upload(ctx, o, r)
	end(err == nil)
	return err
}

// CommitAge is how long an uploaded output waits for its commit. A kill loses the uploads that
// wait, but the Hub allows only about 128 commits an hour. So a repo gets one a minute, and one
// more for every 50 files. Parts share the Hub's limit.
const CommitAge = time.Minute

// commitFiles is the most files in one commit, as the Hub advises.
const commitFiles = 50

// commitBatches commits uploaded outputs once the first of them has waited for the given time, or as
// soon as they fill a commit, and the rest at the end. It runs one commit at a time.
func commitBatches(ctx context.Context, wait time.Duration, uploaded <-chan ledger.Output,
	commit func(context.Context, []ledger.Output) error) error {
	for first := range uploaded {
		waiting, due := []ledger.Output{first}, time.After(wait)
		for open := true; open && len(waiting) < commitFiles; {
			select {
			case o, ok := <-uploaded:
				if open = ok; ok {
					waiting = append(waiting, o)
				}
			case <-due:
				open = false
			}
		}
		if err := commit(ctx, waiting); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// commit commits a batch together with the journal that lists it.
func (m *maker) commit(ctx context.Context, batch []ledger.Output) error {
	if err := m.To.Commit(ctx, batch, m.Ledger); err != nil {
		return err
	}
	m.Ledger.Committed(batch)
	for _, o := range batch {
		m.Progress.Commit(1, o.Size)
	}
	return nil
}
