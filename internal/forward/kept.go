package forward

import (
	"context"
	"errors"
	"slices"

	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// held lists the tensors in an output's kept spool, by the ledger. It's empty without a spool: a
// journal still lists the tensors of an output that was finished, and that someone has removed
// since.
func (j *Job) held(o *spans.Output) []ledger.Tensor {
	list := j.Ledger.Tensors(o.Path)
	if len(list) == 0 {
		return nil
	}
	if _, err := j.Folder.State().Lstat(names.KeptSpool(o.Path)); err != nil {
		return nil
	}
	return list
}

// heldBytes returns how much of an output's kept spool is useful, in bytes.
func (j *Job) heldBytes(o *spans.Output) (n int64) {
	held := j.held(o)
	if len(held) == 0 {
		return 0
	}
	for x := range o.Tensors() {
		if slices.ContainsFunc(held, func(h ledger.Tensor) bool { return h.At == x.At }) {
			n += x.SpoolBytes()
		}
	}
	return n
}

// reopenSpools takes over the spools that earlier runs have begun, and deletes all others, and
// those whose tensors aren't what the ledger says.
func (m *maker) reopenSpools(ctx context.Context, begun []*spans.Output) error {
	for _, t := range m.fetcher.Tasks {
		if slices.Contains(begun, t.Output) {
			err := m.reopen(ctx, t)
			if err == nil {
				continue
			}
			if ctx.Err() != nil {
				return err
			}
			m.Log.Warn("can't use a kept spool", "output", t.Path, "err", err)
		}
		m.Ledger.ForgetTensors(t.Path)
		if err := spool.RemoveKept(m.Folder.State(), t.Output); err != nil {
			return err
		}
	}
	return nil
}

// reopen takes over one spool, or returns an error if its bytes aren't right.
func (m *maker) reopen(ctx context.Context, t *fetch.Task) error {
	s, err := m.fetcher.Room.Open(ctx, t.Output)
	if err != nil {
		return err
	}
	if err := t.Resume(ctx, s, m.Ledger.Tensors(t.Path)); err != nil {
		return errors.Join(err, s.Close())
	}
	m.Progress.Fetched.Add(t.Arrived())
	m.Log.Info("reusing a kept spool", "output", t.Path, "bytes", t.Arrived(), "of", t.Size)
	return nil
}
