package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
)

// heldBytes is how much of the disk the kept spool of an output takes, as far as it is of use.
func (c *conversion) heldBytes(o *spans.Output) (n int64) {
	held := c.ledger.Tensors(o.Path)
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

// takeUpSpools takes up the spools that earlier runs have kept, and deletes those of no use: one whose tensors are not as the ledger
// says, and all of them if they leave too little disk for the others, since the fetcher would wait for ever.
func (c *conversion) takeUpSpools(ctx context.Context, a *attempt) error {
	begun := slices.DeleteFunc(slices.Clone(a.tasks), func(t *fetch.Task) bool {
		return len(c.ledger.Tensors(t.Path)) == 0 || c.ledger.Done(t.Path) || !c.spooled(t.Output)
	})
	if !c.fitBeside(a, begun) {
		begun = nil
	}
	for _, t := range a.tasks {
		if slices.Contains(begun, t) {
			ok, err := c.takeUp(ctx, a.room, t)
			if err != nil {
				return fmt.Errorf("take up the spool of %s: %w", t.Path, err)
			}
			if ok {
				continue
			}
		}
		c.ledger.ForgetTensors(t.Path)
		if err := spool.RemoveKept(c.folder.State, t.Output); err != nil {
			return err
		}
	}
	return nil
}

// fitBeside reports whether the spools still to come fit beside the kept ones in whatever order they fill up.
func (c *conversion) fitBeside(a *attempt, begun []*fetch.Task) bool {
	var open []*spans.Output
	for _, t := range begun {
		open = append(open, t.Output)
	}
	onDisk := func(o *spans.Output) bool { return !c.ledger.Done(o.Path) && !a.room.InMemory[o] && c.spooled(o) }
	segments := make([][]spans.Segment, len(a.files))
	for i, f := range a.files {
		segments[i] = f.Segments
	}
	limit := a.room.Disk.Limit()
	return limit == 0 || budget.PeakSpool(segments, onDisk, open...) <= limit
}

// takeUp takes up one spool, if there is room for it and its bytes are right.
func (c *conversion) takeUp(ctx context.Context, room *spool.Room, t *fetch.Task) (ok bool, err error) {
	s, err := room.Open(t.Output)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.Log.Warn("a kept spool is of no use", "output", t.Path, "err", err)
		}
		return false, nil
	}
	err = t.Resume(ctx, s, c.ledger.Tensors(t.Path))
	if ctx.Err() != nil {
		return false, errors.Join(context.Cause(ctx), spool.CloseForNextRun(s))
	}
	if err != nil {
		c.Log.Warn("a kept spool is of no use", "output", t.Path, "err", err)
		return false, s.Release()
	}
	c.Progress.Fetched.Add(t.Arrived())
	c.Log.Info("spool taken up", "output", t.Path, "bytes", t.Arrived(), "of", t.Size)
	return true, nil
}

// chooseReading decides how each source file is read: whole and through its hash if nothing of it is there, else by range. A file
// whose hash was right is not read again. If some of it has to be, that hash does not cover what comes now.
func (c *conversion) chooseReading(a *attempt) {
	tasks := map[*spans.Output]*fetch.Task{}
	for _, t := range a.tasks {
		tasks[t.Output] = t
	}
	there := func(d spans.Delivery) bool { return c.ledger.Done(d.Output.Path) || tasks[d.Output].Holds(d.At) }
	missing := func(d spans.Delivery) bool { return !there(d) }
	for _, f := range a.files {
		_, known := c.ledger.File(f.Path)
		if known && f.Delivers(missing) {
			c.ledger.ForgetFile(f.Path)
		}
		f.ByRange = known || f.Delivers(there) || !c.Part.Whole() || c.Finish
	}
}
