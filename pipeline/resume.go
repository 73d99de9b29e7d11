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

// heldBytes is how much of the disk the kept spool of a task takes, as far as it is of use.
func (a *attempt) heldBytes(t *fetch.Task) (n int64) {
	held := a.ledger.Tensors(t.Path)
	if len(held) == 0 {
		return 0
	}
	for x := range t.Tensors() {
		if slices.ContainsFunc(held, func(h ledger.Tensor) bool { return h.At == x.At }) {
			n += x.SpoolBytes()
		}
	}
	return n
}

// resumeSpools takes up the spools that earlier runs have kept. A spool whose tensors are not as the ledger says is deleted,
// and so are those that are of no use now; all are where their budget would let the fetcher wait for ever.
func (a *attempt) resumeSpools(ctx context.Context) error {
	resumable := a.resumable()
	if !a.fitBeside(resumable) {
		clear(resumable)
	}
	used := map[string]bool{}
	for _, t := range a.tasks {
		tensors := resumable[t]
		if len(tensors) > 0 {
			ok, err := a.resume(ctx, t, tensors)
			if err != nil {
				return fmt.Errorf("take up the spool of %s: %w", t.Path, err)
			}
			if ok {
				used[spool.KeptPath(a.folder.State, t.Output)] = true
				a.ledger.KeepTensors(t.Path, tensors)
				continue
			}
		}
		a.ledger.KeepTensors(t.Path, nil)
	}
	return spool.RemoveOthers(a.folder.State, used)
}

// resumable lists, by task, the tensors of kept spools that can be used.
func (a *attempt) resumable() map[*fetch.Task][]ledger.Tensor {
	found := map[*fetch.Task][]ledger.Tensor{}
	for _, t := range a.tasks {
		if tensors := a.ledger.Tensors(t.Path); len(tensors) > 0 && !a.ledger.Done(t.Path) && a.spooled(t.Output) {
			found[t] = tensors
		}
	}
	return found
}

// fitBeside reports whether the spools that are still to come fit beside the kept ones in whatever order they fill up.
func (a *attempt) fitBeside(resumable map[*fetch.Task][]ledger.Tensor) bool {
	var open []*spans.Output
	for _, t := range a.tasks {
		if _, ok := resumable[t]; ok {
			open = append(open, t.Output)
		}
	}
	onDisk := func(o *spans.Output) bool { return !a.ledger.Done(o.Path) && !a.room.InMemory[o] && a.spooled(o) }
	segments := make([][]spans.Segment, len(a.files))
	for i, f := range a.files {
		segments[i] = f.Segments
	}
	limit := a.room.Disk.Limit()
	return limit == 0 || budget.PeakSpool(segments, onDisk, open...) <= limit
}

// resume takes up one spool, if there is room for it and its bytes are right.
func (a *attempt) resume(ctx context.Context, t *fetch.Task, tensors []ledger.Tensor) (ok bool, err error) {
	s, err := a.room.Open(t.Output)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			a.Log.Warn("a kept spool is of no use", "output", t.Path, "err", err)
		}
		return false, nil
	}
	err = t.Resume(ctx, s, tensors)
	if ctx.Err() != nil {
		return false, errors.Join(context.Cause(ctx), spool.Leave(s))
	}
	if err != nil {
		a.Log.Warn("a kept spool is of no use", "output", t.Path, "err", err)
		return false, s.Release()
	}
	a.Progress.Fetched.Add(t.Arrived())
	a.Log.Info("spool taken up", "output", t.Path, "bytes", t.Arrived(), "of", t.Size)
	return true, nil
}

// chooseReading decides how each source file is read: whole and through its hash if nothing of it is there, else by range. A file
// whose hash was right is not read again. If some of it has to be, that hash does not cover what comes now.
func (a *attempt) chooseReading() {
	tasks := map[*spans.Output]*fetch.Task{}
	for _, t := range a.tasks {
		tasks[t.Output] = t
	}
	there := func(d spans.Delivery) bool { return a.ledger.Done(d.Output.Path) || tasks[d.Output].Holds(d.At) }
	missing := func(d spans.Delivery) bool { return !there(d) }
	for _, f := range a.files {
		_, known := a.ledger.File(f.Path)
		if known && f.Delivers(missing) {
			a.ledger.ForgetFile(f.Path)
		}
		f.ByRange = known || f.Delivers(there) || !a.Part.Whole() || a.Finish
	}
}

// restartFiles forgets what was made of a source file that has to be read from its beginning: a file with tensors outside the model
// cannot be rebuilt from outputs, so its hash is right only if one run has read all of it.
func (c *conversion) restartFiles() error {
	outside := map[int]bool{}
	for _, t := range c.Plan.Dropped {
		outside[t.File] = true
	}
	for _, f := range fetch.Files(c.Model, c.outputs) {
		_, known := c.ledger.File(f.Path)
		done := func(d spans.Delivery) bool { return c.ledger.Done(d.Output.Path) }
		missing := func(d spans.Delivery) bool { return !done(d) }
		if outside[f.Index] && !(known && !f.Delivers(missing)) {
			if err := c.discard(f.Path); err != nil {
				return err
			}
		}
	}
	return nil
}
