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

// heldBytes is how much of the disk the kept spool of an output takes, as far as it is of use.
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

// takeUpSpools takes up the spools that earlier runs have kept, and deletes those of no use: one
// whose tensors are not as the ledger says, and all of them if they leave too little disk for the
// others, since the fetcher would wait for ever.
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
		if err := spool.RemoveKept(m.Folder.State, t.Output); err != nil {
			return err
		}
	}
	return nil
}

// fitBeside reports whether the spools still to come fit beside the kept ones, however long these
// are there.
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

// takeUp takes up one spool, if there is room for it and its bytes are right.
func (m *maker) takeUp(ctx context.Context, t *fetch.Task) (ok bool, err error) {
	s, err := m.fetcher.Room.Open(t.Output)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			m.Log.Warn("a kept spool is of no use", "output", t.Path, "err", err)
		}
		return false, nil
	}
	err = t.Resume(ctx, s, m.Ledger.Tensors(t.Path))
	if ctx.Err() != nil {
		return false, errors.Join(context.Cause(ctx), s.Leave())
	}
	if err != nil {
		m.Log.Warn("a kept spool is of no use", "output", t.Path, "err", err)
		return false, s.Release()
	}
	m.Progress.Fetched.Add(t.Arrived())
	m.Log.Info("spool taken up", "output", t.Path, "bytes", t.Arrived(), "of", t.Size)
	return true, nil
}
