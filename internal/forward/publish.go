package forward

import (
	"context"
	"time"

	"github.com/df11-convert/df11-convert/internal/ledger"
)

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
	if err := m.Folder.Remove(o.Path); err != nil {
		return o, err
	}
	m.waiting.uploaded(o)
	return o, nil
}

// send uploads a file and closes it, because Windows can't remove an open file.
func (m *maker) send(ctx context.Context, o ledger.Output) error {
	f, err := m.Folder.Open(o.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, end := m.Progress.Uploading(f, o.Size)
	err = m.Repo.Upload(ctx, o, r)
	end(err == nil)
	return err
}

// CommitAge is how long an uploaded output waits for its commit. A kill loses the uploads that
// wait, but the Hub allows only about 128 commits an hour. So a repo gets one a minute, and one
// more for every 50 files. Parts share the Hub's limit.
const CommitAge = time.Minute

// commitFiles is the most files in one commit, as the Hub advises.
const commitFiles = 50

// commitBatches commits all uploaded outputs once the first one has waited for the given time, and
// at the end. It runs one commit at a time.
func commitBatches(ctx context.Context, wait time.Duration, uploaded <-chan ledger.Output,
	commit func(context.Context, []ledger.Output) error) error {
	var waiting []ledger.Output
	var committing chan error // nil: no commit is running
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
			n := min(len(waiting), commitFiles)
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

// commit commits a batch together with the journal that lists it.
func (m *maker) commit(ctx context.Context, batch []ledger.Output) error {
	if err := m.Repo.Commit(ctx, batch, m.Ledger); err != nil {
		return err
	}
	m.Ledger.Committed(batch)
	return nil
}
