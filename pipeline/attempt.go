package pipeline

import (
	"context"
	"maps"
	"slices"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/compare"
	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
)

// attempt is one try to make every output that is not done.
type attempt struct {
	*conversion
	ours      []*spans.Output // of its part
	tasks     []*fetch.Task   // to make them
	leftovers []ledger.Output // of earlier runs, which no commit names yet
	room      *spool.Room     // for spools
	waiting   *forward.WaitingFiles
}

// layOut finds what is still to be made, and divides the budgets. It refuses a disk that is too small.
func (c *conversion) layOut(ctx context.Context) (a *attempt, err error) {
	a = &attempt{conversion: c, ours: c.Part.Of(c.outputs)}
	a.tasks = fetch.NewTasks(a.ours)
	if c.Push != nil {
		a.leftovers = slices.DeleteFunc(c.ledger.Outputs(), func(o ledger.Output) bool { return o.Committed })
	}
	c.files = fetch.Files(c.Model, a.ours)
	if c.disk, err = a.freeDisk(); err != nil {
		return nil, err
	}
	if err := a.divide(); err != nil {
		return nil, err
	}
	if c.Part.Whole() {
		return a, c.copier().check(ctx)
	}
	return a, nil
}

// begin lays out what is still to be made, and takes up what earlier runs have left in spools.
func (c *conversion) begin(ctx context.Context) (*attempt, error) {
	if err := c.restartFiles(); err != nil {
		return nil, err
	}
	maps.DeleteFunc(c.earlier, func(path string, _ bool) bool { return !c.ledger.Done(path) }) // this run makes it again
	a, err := c.layOut(ctx)
	if err != nil {
		return nil, err
	}
	a.countProgress()
	if err = a.resumeSpools(ctx); err == nil {
		a.chooseReading()
		err = c.folder.Save(c.ledger)
	}
	if err != nil {
		a.leaveSpools()
		return nil, err
	}
	return a, nil
}

// divide shares out disk and memory between spools and finished files that wait for their upload.
func (a *attempt) divide() error {
	pending := slices.DeleteFunc(slices.Clone(a.ours), func(o *spans.Output) bool { return a.ledger.Done(o.Path) })
	shares, err := budget.Divide(pending, spans.Segments(pending, len(a.files)), budget.Demand{
		Spooled: a.spooled, Outputs: !a.folder.Stays, Disk: a.disk, Memory: a.SpoolMemory,
	})
	if err != nil {
		return err
	}
	a.room = &spool.Room{
		Dir: a.folder.State, Disk: spool.NewBudget("disk", shares.Spools), Memory: spool.NewBudget("memory", shares.Memory),
		InMemory: shares.InMemory, Keep: !a.Model.Local, // an etag pins the files of a Hub
	}
	a.waiting = forward.NewWaitingFiles(a.folder.Stays, shares.Outputs, a.room.Disk, a.leftovers)
	return nil
}

// spooled reports whether an output needs a spool.
func (a *attempt) spooled(o *spans.Output) bool { return !fetch.InPlace(a.Source, o) }

// spareDisk is what is left free of a disk whose size nobody set a budget for: this much, or a twentieth of a small one.
const spareDisk = 256 << 20

// leastRatio is less than what DF11 leaves of trained weights (67 %): who has not even that much room need not begin.
const leastRatio = 0.6

// freeDisk is the budget for what is on its way: the given one, else what is free. 0 is no bound. Outputs that stay must have
// room beside it. What spools and leftovers of earlier runs take is theirs again.
func (a *attempt) freeDisk() (int64, error) {
	free, known := spool.FreeSpace(a.folder.State)
	if !known {
		return a.Disk, nil
	}
	var pending int64
	for _, t := range a.tasks {
		if !a.ledger.Done(t.Path) {
			pending += t.Size
			free += a.heldBytes(t)
		}
	}
	for _, o := range a.leftovers {
		if !a.folder.Stays && o.Here {
			free += o.Size
		}
	}
	free = max(1, free-min(spareDisk, free/20))
	if a.folder.Stays {
		stays := int64(leastRatio * float64(pending))
		if stays > free {
			return 0, &budget.DiskError{Need: stays, Have: free}
		}
		free -= stays
	}
	if a.Disk > 0 {
		return a.Disk, nil
	}
	return max(1, free), nil
}

func (a *attempt) countProgress() {
	p := a.Progress
	p.SourceBytes.Store(spans.ProvedBytes(a.ours))
	p.OutputFiles.Store(int64(len(a.ours)))
	for _, n := range []interface{ Store(int64) }{&p.Fetched, &p.Encoded, &p.Verified, &p.Found, &p.Uploaded, &p.Outputs, &p.OutputBytes} {
		n.Store(0)
	}
	p.Expect(progress.Read, progress.Encode, progress.Verify)
	if a.Push != nil {
		p.Expect(progress.Upload)
	}
	for _, o := range a.ours {
		made, done := a.ledger.Output(o.Path)
		if !done {
			p.OutputBytes.Add(progress.Guess(o.Size))
			continue
		}
		p.Outputs.Add(1)
		p.Encoded.Add(o.Size)
		p.Verified.Add(o.Size)
		p.Fetched.Add(o.Size)
		if a.earlier[o.Path] {
			p.Found.Add(o.Size)
		}
		p.OutputBytes.Add(made.Size)
		if made.Uploaded || made.Committed {
			p.Uploaded.Add(made.Size)
		}
	}
}

// work is the way forward for what is still to be made.
func (a *attempt) work() *forward.Work {
	return &forward.Work{
		Progress: a.Progress,
		Fetcher: &fetch.Fetcher{
			Source: a.Source, Tasks: a.tasks, Files: a.files, Ledger: a.ledger, Room: a.room,
			Parallel: a.Workers, DropCache: a.DropCache, Progress: a.Progress,
		},
		// One core is left to the hash of the same file, a single chain of steps that takes as long.
		Comparer: &compare.Comparer{Workers: max(1, a.Workers-1), GPU: a.GPU, Strict: true, Progress: a.Progress},
		Make: &forward.Making{
			Folder: a.folder, Repo: a.repo, Ledger: a.ledger, Waiting: a.waiting, Leftovers: a.leftovers, Workers: a.Workers,
			CommitWait: a.CommitWait, DropCache: a.DropCache, Log: a.Log,
		},
	}
}

// leaveSpools closes the spools of an attempt that has ended; those that outlive the process stay for the next run.
func (a *attempt) leaveSpools() {
	for _, t := range a.tasks {
		if t.Spool == nil {
			continue
		}
		if err := spool.Leave(t.Spool); err != nil {
			a.Log.Warn("a spool can't be closed", "output", t.Path, "err", err)
		}
	}
}
