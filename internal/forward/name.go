package forward

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// startHash starts to hash a file as stored, in its own goroutine. The hash ends early when ctx
// ends or the draft is discarded.
func (d *draft) startHash(ctx context.Context, p *progress.Counters) {
	ctx, d.stopHash = context.WithCancel(ctx)
	sum := sync.OnceValues(func() (string, error) {
		done := p.Timed(progress.Hash)
		sum, err := streams.SHA256(ctx, io.NewSectionReader(d.file, 0, d.size))
		if done(d.size); err != nil {
			return "", fmt.Errorf("hash output: %w", err)
		}
		return sum, nil
	})
	d.sum = sum
	go func() { _, _ = sum() }()
}

// name records a compared file in the ledger, syncs it to disk, and renames it. It waits for
// the hash and for the disk. If the run ends before, the next one goes on with the spool.
func (m *maker) name(_ context.Context, c compared) (ledger.Output, error) {
	defer c.discard()
	o := ledger.Output{
		Path: c.task.Path, Size: c.size, Units: c.units, Made: true,
		Verified: c.verified,
		Place:    ledger.Place{Here: true},
	}
	var err error
	if o.SHA256, err = c.sum(); err == nil {
		err = c.task.Unchanged(m.Source)
	}
	if err == nil {
		err = m.Ledger.Add(o)
	}
	if err == nil {
		err = c.file.Commit(c.size)
	}
	if err == nil && c.task.Spool != nil {
		err = c.task.Spool.Release()
		m.Ledger.ForgetTensors(o.Path)
	}
	if err != nil {
		return o, fmt.Errorf("output %s: %w", o.Path, err)
	}
	m.Progress.Outputs.Add(1)
	m.Progress.OutputBytes.Add(o.Size - c.task.LikelyBytes())
	m.Log.Info("output finished", "file", o.Path, "bytes", o.Size)
	return o, nil
}
