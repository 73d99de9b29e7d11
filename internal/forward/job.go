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
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
)

// Job says what Make makes, where it goes, and with what.
type Job struct {
	Source    model.Source
	Model     *model.Model
	Outputs   []*spans.Output // of this run, made already or not
	Ledger    *ledger.Ledger  // says which are made
	Leftovers []ledger.Output // of earlier runs, which no commit names yet
	ByRange   bool            // of every source file, only what is needed is read

	Folder *target.Folder
	Repo   *target.Repo // nil: nothing is published
	// CommitWait is how long an uploaded output waits for its commit.
	CommitWait time.Duration

	Memory budget.Memory
	// Disk is for spools and for files that wait for their upload; 0 is all that is free.
	Disk int64

	GPU      GPU // nil: none
	Progress *progress.Counters
	Log      *slog.Logger
}

// pending lists the outputs that are still to be made.
func (j *Job) pending() []*spans.Output {
	return slices.DeleteFunc(slices.Clone(j.Outputs),
		func(o *spans.Output) bool { return j.Ledger.Done(o.Path) })
}

// demand is what outputs need of disk and memory.
func (j *Job) demand(outputs []*spans.Output) *budget.Demand {
	return budget.NewDemand(outputs, spans.Segments(outputs, len(j.Model.SHA256)), j.Model.Local,
		!j.Folder.Stays, j.Memory.Spools)
}

// FreeDisk returns the disk for spools and waiting files, or a *budget.DiskError if what is still
// to be made needs more. 0 is no bound.
func (j *Job) FreeDisk() (int64, error) {
	disk, _, err := j.divide()
	return disk, err
}

// divide shares out disk and memory for what is still to be made.
func (j *Job) divide() (disk int64, shares budget.Shares, err error) {
	pending := j.pending()
	demand := j.demand(pending)
	if disk, err = j.freeDisk(pending, demand.Least()); err == nil {
		shares, err = demand.Divide(disk)
	}
	return disk, shares, err
}

// spareDisk is what is left free of a disk whose size nobody set a budget for: this much, or a
// twentieth of a small one.
const spareDisk = 256 << 20

// freeDisk returns Disk, else the free space less what the results will keep and, as far as least
// allows, less a reserve. Files of earlier runs count as free, since they are reused. 0 is no
// bound.
func (j *Job) freeDisk(pending []*spans.Output, least int64) (int64, error) {
	free, known := spool.FreeSpace(j.Folder.State.Name())
	if !known {
		return j.Disk, nil
	}
	var stays int64
	for _, o := range pending {
		free += j.heldBytes(o)
		if j.Folder.Stays {
			stays += o.LikelyBytes()
		}
	}
	for _, o := range j.Leftovers {
		if !j.Folder.Stays && o.Here {
			free += o.Size
		}
	}
	if stays+least > free {
		return 0, &budget.DiskError{Need: stays + least, Have: free, Folder: j.Folder.Root.Name(),
			Result: stays}
	}
	if j.Disk > 0 {
		return j.Disk, nil
	}
	return max(1, least, free-stays-min(spareDisk, free/20)), nil
}

// fetcher reads what the job needs into spools within these shares.
func (j *Job) fetcher(shares budget.Shares) *fetch.Fetcher {
	return &fetch.Fetcher{
		Source: j.Source, Model: j.Model, Tasks: fetch.NewTasks(j.Outputs), Ledger: j.Ledger,
		Room: &spool.Room{
			Dir: j.Folder.State, Disk: spool.NewBudget(shares.Spools),
			Memory:   spool.NewBudget(shares.Memory),
			InMemory: shares.InMemory, Keep: !j.Model.Local, // an etag pins the files of a Hub
		},
		Parallel: j.Memory.Workers, ByRange: j.ByRange, Progress: j.Progress,
	}
}

// countProgress begins to count again: what is done already counts as done.
func (j *Job) countProgress() {
	p := j.Progress
	p.SourceBytes.Store(spans.ProvedBytes(j.Outputs))
	p.OutputFiles.Store(int64(len(j.Outputs)))
	for _, n := range []interface{ Store(int64) }{&p.Fetched, &p.Encoded, &p.Verified, &p.Found,
		&p.Uploaded, &p.Outputs, &p.OutputBytes} {
		n.Store(0)
	}
	p.Expect(progress.Read, progress.Encode, progress.Verify)
	if j.Repo != nil {
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
		if !made.Made {
			p.Found.Add(o.Size)
		}
		p.OutputBytes.Add(made.Size)
		if made.Uploaded || made.Committed {
			p.Uploaded.Add(made.Size)
		}
	}
}
