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

// resumable lists, by task, the tensors of kept spools that can be used. A tensor that came by range is under no hash: it is
// fetched again where its file is streamed now.
func (a *attempt) resumable() map[*fetch.Task][]ledger.Tensor {
	found := map[*fetch.Task][]ledger.Tensor{}
	for _, t := range a.tasks {
		if a.ledger.Done(t.Path) || !a.spooled(t.Output) {
			continue
		}
		streamed := map[int64]bool{}
		for x := range t.Tensors() {
			streamed[x.At] = !a.files[x.File].ByRange
		}
		tensors := slices.DeleteFunc(a.ledger.Tensors(t.Path), func(h ledger.Tensor) bool { return h.Prefix == nil && streamed[h.At] })
		if len(tensors) > 0 {
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
	err = t.Resume(ctx, s, tensors, a.files)
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

// trimCheckpoints forgets what is said of source files that have to be read again. Where an output was made of bytes that no
// hash has seen, streaming the rest tells nothing, and the file is to be verified.
func (a *attempt) trimCheckpoints() {
	type place struct {
		output string
		at     int64
	}
	held := map[place]bool{}
	for _, t := range a.tasks {
		for _, x := range a.ledger.Tensors(t.Path) {
			held[place{t.Path, x.At}] = true
		}
	}
	needed := func(d spans.Delivery) bool { return !a.ledger.Done(d.Output.Path) }
	missing := func(d spans.Delivery) bool { return needed(d) && !held[place{d.Output.Path, d.At}] }
	for _, f := range a.files {
		if _, final := a.ledger.Final(f.Path); final && f.FirstNeeded(needed) < f.Size {
			a.ledger.TrimCheckpoints(f.Path, -1)
		}
		a.ledger.TrimCheckpoints(f.Path, f.FirstNeeded(missing))
		if _, final := a.ledger.Final(f.Path); !final {
			f.ByRange = f.ByRange || a.unhashed(f)
		}
	}
}

// unhashed reports whether an output holds bytes of a file that were fetched without its hash.
func (a *attempt) unhashed(f *fetch.File) bool {
	for _, o := range spans.UsedBy(f.Segments) {
		done, ok := a.ledger.Output(o.Path)
		if ok && a.ledger.Done(o.Path) && !slices.ContainsFunc(done.Prefixes, func(p ledger.Prefix) bool { return p.File == f.Path }) {
			return true
		}
	}
	return false
}
