package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/forward/compare"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// begin lays out what is still to be made, and takes up what earlier runs have left in spools.
func (c *conversion) begin(ctx context.Context) (*forward.Work, error) {
	w, err := c.layOut(ctx)
	if err != nil {
		return nil, err
	}
	c.countProgress()
	if err = c.takeUpSpools(ctx, w.Fetcher); err == nil {
		err = c.folder.Save(c.ledger)
	}
	if err != nil {
		c.leaveSpools(w.Fetcher)
		return nil, err
	}
	return w, nil
}

// layOut is the way forward for what is still to be made, and shares out disk and memory. It
// refuses a disk that is too small for that, or for a file that is copied.
func (c *conversion) layOut(ctx context.Context) (*forward.Work, error) {
	pending, leftovers := c.pending(), c.leftovers()
	demand := budget.NewDemand(pending, spans.Segments(pending, len(c.Model.SHA256)), c.Model.Local,
		!c.folder.Stays, c.Memory.Spools)
	disk, err := c.freeDisk(pending, demand.Least())
	if err != nil {
		return nil, err
	}
	shares, err := demand.Divide(disk)
	if err != nil {
		return nil, err
	}
	if c.Part.Whole() {
		if err := c.copier(disk).check(ctx); err != nil {
			return nil, err
		}
	}
	ours := c.Part.Of(c.outputs)
	room := &spool.Room{
		Dir: c.folder.State, Disk: spool.NewBudget(shares.Spools),
		Memory:   spool.NewBudget(shares.Memory),
		InMemory: shares.InMemory, Keep: !c.Model.Local, // an etag pins the files of a Hub
	}
	return &forward.Work{
		Fetcher: &fetch.Fetcher{
			Source: c.Source, Model: c.Model, Tasks: fetch.NewTasks(ours), Ledger: c.ledger,
			Room:     room,
			Parallel: c.Memory.Workers, ByRange: !c.Part.Whole(), Progress: c.Progress,
		},
		// One core is left to the hash of the same file, a single chain of steps that takes as
		// long.
		Comparer: &compare.Comparer{Workers: max(1, c.Memory.Workers-1), GPU: c.GPU, Strict: true,
			Progress: c.Progress},
		Make: &forward.Making{
			Folder: c.folder, Repo: c.repo, Waiting: forward.NewWaitingFiles(c.folder.Stays,
				shares.Outputs, room.Disk, leftovers),
			Leftovers: leftovers, Workers: c.Memory.Workers, CommitWait: c.CommitWait, Log: c.Log,
		},
	}, nil
}

// pending lists the outputs of the conversion's part that are not done.
func (c *conversion) pending() []*spans.Output {
	return slices.DeleteFunc(slices.Clone(c.Part.Of(c.outputs)),
		func(o *spans.Output) bool { return c.ledger.Done(o.Path) })
}

// leftovers lists the outputs of earlier runs that no commit names yet.
func (c *conversion) leftovers() []ledger.Output {
	if c.Push == nil {
		return nil
	}
	return slices.DeleteFunc(c.ledger.Outputs(), func(o ledger.Output) bool { return o.Committed })
}

// spareDisk is what is left free of a disk whose size nobody set a budget for: this much, or a
// twentieth of a small one.
const spareDisk = 256 << 20

// freeDisk returns the disk for spools and waiting files: --disk, else the free space less what the
// results will keep and, as far as least allows, less a reserve. Files of earlier runs count as
// free, since they are reused. 0 is no bound.
func (c *conversion) freeDisk(pending []*spans.Output, least int64) (int64, error) {
	free, known := spool.FreeSpace(c.folder.State.Name())
	if !known {
		return c.Disk, nil
	}
	var stays int64
	for _, o := range pending {
		free += c.heldBytes(o)
		if c.folder.Stays {
			stays += o.LikelyBytes()
		}
	}
	for _, o := range c.leftovers() {
		if !c.folder.Stays && o.Here {
			free += o.Size
		}
	}
	if stays+least > free {
		return 0, &budget.DiskError{Need: stays + least, Have: free, Folder: c.folder.Root.Name(),
			Result: stays}
	}
	if c.Disk > 0 {
		return c.Disk, nil
	}
	return max(1, least, free-stays-min(spareDisk, free/20)), nil
}

// countProgress begins to count anew: what is done already counts as done.
func (c *conversion) countProgress() {
	p, ours := c.Progress, c.Part.Of(c.outputs)
	p.SourceBytes.Store(spans.ProvedBytes(ours))
	p.OutputFiles.Store(int64(len(ours)))
	for _, n := range []interface{ Store(int64) }{&p.Fetched, &p.Encoded, &p.Verified, &p.Found,
		&p.Uploaded, &p.Outputs, &p.OutputBytes} {
		n.Store(0)
	}
	p.Expect(progress.Read, progress.Encode, progress.Verify)
	if c.Push != nil {
		p.Expect(progress.Upload)
	}
	for _, o := range ours {
		made, _ := c.ledger.Output(o.Path)
		if !c.ledger.Done(o.Path) {
			p.OutputBytes.Add(o.LikelyBytes())
			continue
		}
		p.Outputs.Add(1)
		p.Encoded.Add(o.Size)
		p.Verified.Add(o.Size)
		p.Fetched.Add(o.Size)
		if !made.Made {
			p.Found.Add(o.Size)
		}
		p.OutputBytes.Add(made.Size)
		if made.Uploaded || made.Committed {
			p.Uploaded.Add(made.Size)
		}
	}
}

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

// takeUpSpools takes up the spools that earlier runs have kept, and deletes those of no use: one
// whose tensors are not as the ledger says, and all of them if they leave too little disk for the
// others, since the fetcher would wait for ever.
func (c *conversion) takeUpSpools(ctx context.Context, f *fetch.Fetcher) error {
	begun := slices.DeleteFunc(slices.Clone(f.Tasks), func(t *fetch.Task) bool {
		return len(c.ledger.Tensors(t.Path)) == 0 || c.ledger.Done(t.Path) ||
			!t.Spooled(c.Model.Local)
	})
	if !c.fitBeside(f.Room, begun) {
		begun = nil
	}
	for _, t := range f.Tasks {
		if slices.Contains(begun, t) {
			ok, err := c.takeUp(ctx, f.Room, t)
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

// fitBeside reports whether the spools still to come fit beside the kept ones, however long these
// are there.
func (c *conversion) fitBeside(room *spool.Room, begun []*fetch.Task) bool {
	kept, pending := map[*spans.Output]bool{}, c.pending()
	var held int64
	for _, t := range begun {
		kept[t.Output] = true
		held += t.Size
	}
	demand := budget.NewDemand(pending, spans.Segments(pending, len(c.Model.SHA256)), c.Model.Local,
		false, 0)
	return held+demand.Peak(func(o *spans.Output) bool {
		return !room.InMemory[o] && !kept[o]
	}) <= room.Disk.Limit
}

// takeUp takes up one spool, if there is room for it and its bytes are right.
func (c *conversion) takeUp(ctx context.Context, room *spool.Room,
	t *fetch.Task) (ok bool, err error) {
	s, err := room.Open(t.Output)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.Log.Warn("a kept spool is of no use", "output", t.Path, "err", err)
		}
		return false, nil
	}
	err = t.Resume(ctx, s, c.ledger.Tensors(t.Path))
	if ctx.Err() != nil {
		return false, errors.Join(context.Cause(ctx), s.Leave())
	}
	if err != nil {
		c.Log.Warn("a kept spool is of no use", "output", t.Path, "err", err)
		return false, s.Release()
	}
	c.Progress.Fetched.Add(t.Arrived())
	c.Log.Info("spool taken up", "output", t.Path, "bytes", t.Arrived(), "of", t.Size)
	return true, nil
}

// leaveSpools closes the spools of an attempt that has ended.
func (c *conversion) leaveSpools(f *fetch.Fetcher) {
	if err := f.Leave(); err != nil {
		c.Log.Warn("a spool can't be closed", "err", err)
	}
}
