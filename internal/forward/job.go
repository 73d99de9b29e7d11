package forward

import (
	"log/slog"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// Job says what Make makes, where it goes, and what it may use.
type Job struct {
	Source    model.Source
	Model     *model.Model
	Outputs   []*spans.Output // of this run, already made or not
	Ledger    *ledger.Ledger  // lists which are made
	Leftovers []ledger.Output // of earlier runs; no commit has them yet
	ByRange   bool            // read only what is needed of every source file

	Folder *publish.Folder
	To     publish.Remote // nil: nothing is published
	// CommitWait is how long an uploaded output waits for its commit.
	CommitWait time.Duration
	Wait       bool // outputs wait in the folder for the last commit

	Memory budget.Memory
	// Disk is for spools and files that wait for their upload; 0 means all free space.
	Disk  int64
	Other int64 // bytes of files without weights that are still missing in a folder that stays

	Means
	Log *slog.Logger
}

// pending lists the outputs that aren't made yet.
func (j *Job) pending() []*spans.Output {
	return slices.DeleteFunc(slices.Clone(j.Outputs),
		func(o *spans.Output) bool { return j.Ledger.Done(o.Path) })
}

// A Division says how memory and disk are divided among the missing outputs.
type Division struct {
	Disk int64 // of all of them; 0 means no limit
	budget.Shares
	begun []*spans.Output // whose kept spools go on
}

// Divide divides memory and disk, or returns a *budget.DiskError if the outputs need more. The
// spools that earlier runs kept go on where they are, unless that leaves too little disk for the
// others: the fetcher would wait forever.
func (j *Job) Divide() (d Division, err error) {
	pending, space := j.pending(), j.Space()
	all := budget.NewDemand(pending, spans.Segments(pending, len(j.Model.SHA256)), j.Model.Local,
		!j.Folder.Stays, j.Memory.Spools)
	for _, d.begun = range [][]*spans.Output{j.begun(pending), nil} {
		demand := all.Continue(d.begun)
		least := demand.Least()
		if err = space.Check(least); err == nil {
			d.Disk = space.ForOutputs(least)
			d.Shares, err = demand.Divide(d.Disk)
			break
		}
	}
	return d, err
}

// begun lists the pending outputs with tensors in a kept spool.
func (j *Job) begun(pending []*spans.Output) (list []*spans.Output) {
	for _, o := range pending {
		if o.Spooled(j.Model.Local) && len(j.held(o)) > 0 {
			list = append(list, o)
		}
	}
	return list
}

// Space returns the disk of the folder. Files of earlier runs count as free, because they are
// reused.
func (j *Job) Space() budget.Space {
	s := budget.Space{Folder: j.Folder.Name(), Free: -1, Limit: j.Disk}
	free, known := spool.FreeSpace(j.Folder.State().Name())
	if !known {
		return s
	}
	for _, o := range j.pending() {
		free += j.heldBytes(o)
		if j.Folder.Stays {
			s.Stays += o.LikelyBytes()
		}
	}
	for _, o := range j.Leftovers {
		if !j.Folder.Stays && o.Here {
			free += o.Size
		}
	}
	if j.Folder.Stays {
		s.Stays += j.Other
	}
	s.Free = free
	return s
}

// fetcher returns a fetcher that reads what the job needs into spools within these shares.
func (j *Job) fetcher(shares budget.Shares) *fetch.Fetcher {
	return &fetch.Fetcher{
		Source: j.Source, Model: j.Model, Tasks: fetch.NewTasks(j.Outputs), Ledger: j.Ledger,
		Room: &spool.Room{
			Dir: j.Folder.State(), Disk: spool.NewBudget(shares.Spools),
			Memory:   spool.NewBudget(shares.Memory),
			InMemory: shares.InMemory, Keep: !j.Model.Local, // an ETag identifies a Hub's file
		},
		Parallel: j.Workers, ByRange: j.ByRange, Progress: j.Progress,
	}
}

// countProgress resets the counters; finished work counts as done.
func (j *Job) countProgress() {
	p := j.Progress
	p.SourceBytes.Store(spans.ProvedBytes(j.Outputs))
	p.OutputFiles.Store(int64(len(j.Outputs)))
	for _, n := range []interface{ Store(int64) }{&p.Fetched, &p.Encoded, &p.Verified,
		&p.Uploaded, &p.Outputs, &p.Published, &p.OutputBytes} {
		n.Store(0)
	}
	p.Expect(progress.Read, progress.Encode, progress.Verify)
	if j.To != nil {
		p.Expect(progress.Upload)
	}
	for _, o := range j.Outputs {
		made, _ := j.Ledger.Output(o.Path)
		if !j.Ledger.Done(o.Path) {
			p.OutputBytes.Add(o.LikelyBytes())
			continue
		}
		p.Outputs.Add(1)
		p.Encoded.Add(o.Size)
		p.Verified.Add(o.Size)
		p.Fetched.Add(o.Size)
		p.OutputBytes.Add(made.Size)
		if made.Uploaded || made.Committed {
			p.Uploaded.Add(made.Size)
		}
		if made.Committed {
			p.Published.Add(1)
		}
	}
}
