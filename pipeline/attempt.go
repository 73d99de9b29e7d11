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
func (s *state) begin(ctx context.Context) (*forward.Work, error) {
	w, err := s.layOut(ctx)
	if err != nil {
		return nil, err
	}
	s.countProgress(s.ledger)
	if err = s.takeUpSpools(ctx, w.Fetcher); err == nil {
		err = s.folder.Save(s.ledger)
	}
	if err != nil {
		s.leaveSpools(w.Fetcher)
		return nil, err
	}
	return w, nil
}

// layOut is the way forward for what is still to be made, and shares out disk and memory. It
// refuses a disk that is too small for that, or for a file that is copied.
func (s *state) layOut(ctx context.Context) (*forward.Work, error) {
	pending, leftovers := s.pending(), s.leftovers()
	demand := budget.NewDemand(pending, spans.Segments(pending, len(s.Model.SHA256)), s.Model.Local,
		!s.folder.Stays, s.Memory.Spools)
	disk, err := s.freeDisk(pending, demand.Least())
	if err != nil {
		return nil, err
	}
	shares, err := demand.Divide(disk)
	if err != nil {
		return nil, err
	}
	if s.Part.Whole() {
		if err := s.copier(disk).check(ctx); err != nil {
			return nil, err
		}
	}
	ours := s.Part.Of(s.outputs)
	room := &spool.Room{
		Dir: s.folder.State, Disk: spool.NewBudget(shares.Spools),
		Memory:   spool.NewBudget(shares.Memory),
		InMemory: shares.InMemory, Keep: !s.Model.Local, // an etag pins the files of a Hub
	}
	return &forward.Work{
		Fetcher: &fetch.Fetcher{
			Source: s.Source, Model: s.source, Tasks: fetch.NewTasks(ours), Ledger: s.ledger,
			Room:     room,
			Parallel: s.Memory.Workers, ByRange: !s.Part.Whole(), Progress: s.Progress,
		},
		// One core is left to the hash of the same file, a single chain of steps that takes as
		// long.
		Comparer: &compare.Comparer{Workers: max(1, s.Memory.Workers-1), GPU: s.GPU, Strict: true,
			Progress: s.Progress},
		Make: &forward.Making{
			Folder: s.folder, Repo: s.repo, Waiting: forward.NewWaitingFiles(s.folder.Stays,
				shares.Outputs, room.Disk, leftovers),
			Leftovers: leftovers, Workers: s.Memory.Workers, CommitWait: s.CommitWait, Log: s.Log,
		},
	}, nil
}

// pending lists the outputs of the conversion's part that are not done.
func (s *state) pending() []*spans.Output {
	return slices.DeleteFunc(slices.Clone(s.Part.Of(s.outputs)),
		func(o *spans.Output) bool { return s.ledger.Done(o.Path) })
}

// leftovers lists the outputs of earlier runs that no commit names yet.
func (s *state) leftovers() []ledger.Output {
	if s.Push == nil {
		return nil
	}
	return slices.DeleteFunc(s.ledger.Outputs(), func(o ledger.Output) bool { return o.Committed })
}

// spareDisk is what is left free of a disk whose size nobody set a budget for: this much, or a
// twentieth of a small one.
const spareDisk = 256 << 20

// freeDisk returns the disk for spools and waiting files: --disk, else the free space less what the
// results will keep and, as far as least allows, less a reserve. Files of earlier runs count as
// free, since they are reused. 0 is no bound.
func (s *state) freeDisk(pending []*spans.Output, least int64) (int64, error) {
	free, known := spool.FreeSpace(s.folder.State.Name())
	if !known {
		return s.Disk, nil
	}
	var stays int64
	for _, o := range pending {
		free += s.heldBytes(o)
		if s.folder.Stays {
			stays += o.LikelyBytes()
		}
	}
	for _, o := range s.leftovers() {
		if !s.folder.Stays && o.Here {
			free += o.Size
		}
	}
	if stays+least > free {
		return 0, &budget.DiskError{Need: stays + least, Have: free, Folder: s.folder.Root.Name(),
			Result: stays}
	}
	if s.Disk > 0 {
		return s.Disk, nil
	}
	return max(1, least, free-stays-min(spareDisk, free/20)), nil
}

// countProgress begins to count anew: what is done already counts as done.
func (j *job) countProgress(done *ledger.Ledger) {
	p, ours := j.Progress, j.Part.Of(j.outputs)
	p.SourceBytes.Store(spans.ProvedBytes(ours))
	p.OutputFiles.Store(int64(len(ours)))
	for _, n := range []interface{ Store(int64) }{&p.Fetched, &p.Encoded, &p.Verified, &p.Found,
		&p.Uploaded, &p.Outputs, &p.OutputBytes} {
		n.Store(0)
	}
	p.Expect(progress.Read, progress.Encode, progress.Verify)
	if j.Push != nil {
		p.Expect(progress.Upload)
	}
	for _, o := range ours {
		made, _ := done.Output(o.Path)
		if !done.Done(o.Path) {
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
func (s *state) heldBytes(o *spans.Output) (n int64) {
	held := s.ledger.Tensors(o.Path)
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
func (s *state) takeUpSpools(ctx context.Context, f *fetch.Fetcher) error {
	begun := slices.DeleteFunc(slices.Clone(f.Tasks), func(t *fetch.Task) bool {
		return len(s.ledger.Tensors(t.Path)) == 0 || s.ledger.Done(t.Path) ||
			!t.Spooled(s.Model.Local)
	})
	if !s.fitBeside(f.Room, begun) {
		begun = nil
	}
	for _, t := range f.Tasks {
		if slices.Contains(begun, t) {
			ok, err := s.takeUp(ctx, f.Room, t)
			if err != nil {
				return fmt.Errorf("take up the spool of %s: %w", t.Path, err)
			}
			if ok {
				continue
			}
		}
		s.ledger.ForgetTensors(t.Path)
		if err := spool.RemoveKept(s.folder.State, t.Output); err != nil {
			return err
		}
	}
	return nil
}

// fitBeside reports whether the spools still to come fit beside the kept ones, however long these
// are there.
func (s *state) fitBeside(room *spool.Room, begun []*fetch.Task) bool {
	kept, pending := map[*spans.Output]bool{}, s.pending()
	var held int64
	for _, t := range begun {
		kept[t.Output] = true
		held += t.Size
	}
	demand := budget.NewDemand(pending, spans.Segments(pending, len(s.Model.SHA256)), s.Model.Local,
		false, 0)
	return held+demand.Peak(func(o *spans.Output) bool {
		return !room.InMemory[o] && !kept[o]
	}) <= room.Disk.Limit
}

// takeUp takes up one spool, if there is room for it and its bytes are right.
func (s *state) takeUp(ctx context.Context, room *spool.Room,
	t *fetch.Task) (ok bool, err error) {
	kept, err := room.Open(t.Output)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.Log.Warn("a kept spool is of no use", "output", t.Path, "err", err)
		}
		return false, nil
	}
	err = t.Resume(ctx, kept, s.ledger.Tensors(t.Path))
	if ctx.Err() != nil {
		return false, errors.Join(context.Cause(ctx), kept.Leave())
	}
	if err != nil {
		s.Log.Warn("a kept spool is of no use", "output", t.Path, "err", err)
		return false, kept.Release()
	}
	s.Progress.Fetched.Add(t.Arrived())
	s.Log.Info("spool taken up", "output", t.Path, "bytes", t.Arrived(), "of", t.Size)
	return true, nil
}

// leaveSpools closes the spools of an attempt that has ended.
func (s *state) leaveSpools(f *fetch.Fetcher) {
	if err := f.Leave(); err != nil {
		s.Log.Warn("a spool can't be closed", "err", err)
	}
}
