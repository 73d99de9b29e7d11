package forward

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// heldBytes returns how much of an output's kept spool is useful, in bytes.
func (j *Job) heldBytes(o *spans.Output) (n int64) {
	held := j.Ledger.Tensors(o.Path)
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

// takeUpSpools takes over the spools that earlier runs kept, and deletes useless ones. A spool is
// useless if its tensors aren't what the ledger says. All of them are useless if they leave too
// little disk for the others, because then the fetcher would wait forever.
func (m *maker) takeUpSpools(ctx context.Context) error {
	begun := slices.DeleteFunc(slices.Clone(m.fetcher.Tasks), func(t *fetch.Task) bool {
		return len(m.Ledger.Tensors(t.Path)) == 0 || m.Ledger.Done(t.Path) ||
			!t.Spooled(m.Model.Local)
	})
	if !m.fitBeside(begun) {
		begun = nil
	}
	for _, t := range m.fetcher.Tasks {
		if slices.Contains(begun, t) {
			ok, err := m.takeUp(ctx, t)
			if err != nil {
				return fmt.Errorf("take up the spool of %s: %w", t.Path, err)
			}
			if ok {
				continue
			}
		}
		m.Ledger.ForgetTensors(t.Path)
		if err := spool.RemoveKept(m.Folder.State(), t.Output); err != nil {
			return err
		}
	}
	return nil
}

// fitBeside reports whether the missing spools fit next to the kept ones, no matter how long these
// stay.
func (m *maker) fitBeside(begun []*fetch.Task) bool {
	kept, room := map[*spans.Output]bool{}, m.fetcher.Room
	var held int64
	for _, t := range begun {
		kept[t.Output] = true
		held += t.Size
	}
	return held+m.demand(m.pending()).Peak(func(o *spans.Output) bool {
		return !room.InMemory[o] && !kept[o]
	}) <= room.Disk.Limit
}

// takeUp takes over one spool if the disk has space for it and its bytes are right.
func (m *maker) takeUp(ctx context.Context, t *fetch.Task) (ok bool, err error) {
	s, err := m.fetcher.Room.Open(t.Output)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			m.Log.Warn("can't use a kept spool", "output", t.Path, "err", err)
		}
		return false, nil
	}
	err = t.Resume(ctx, s, m.Ledger.Tensors(t.Path))
	if ctx.Err() != nil {
		return false, errors.Join(context.Cause(ctx), s.Leave())
	}
	if err != nil {
		m.Log.Warn("can't use a kept spool", "output", t.Path, "err", err)
		return false, s.Release()
	}
	m.Progress.Fetched.Add(t.Arrived())
	m.Log.Info("reusing a kept spool", "output", t.Path, "bytes", t.Arrived(), "of", t.Size)
	return true, nil
}
