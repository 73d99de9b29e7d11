package convert

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
)

// makeMissing makes every output that is not done.
func makeMissing(ctx context.Context, j *job, t *targets) error {
	work := forwardJob(j, t)
	division, err := work.Divide()
	if err != nil {
		return err
	}
	// an earlier run with less disk has uploaded some already, and only a commit makes them
	// readable
	gone := func(o ledger.Output) bool { return !o.Here }
	work.Wait = j.CommitWait == 0 && j.Part.Whole() &&
		budget.Wait(j.Plan, j.outputs, division.Disk) && !slices.ContainsFunc(work.Leftovers, gone)
	if err := forward.Make(ctx, work); err != nil {
		return err
	}
	if !j.Part.Whole() { // other parts may hold what DF11 can
		return nil
	}
	var units []metadata.Unit
	for _, o := range t.ledger.Outputs() {
		units = append(units, o.Units...)
	}
	return metadata.CheckGain(units)
}

// forwardJob returns the way forward for what is still to be made.
func forwardJob(j *job, t *targets) *forward.Job {
	return &forward.Job{
		Source: j.Source, Model: j.Model, Outputs: j.Part.Of(j.outputs), Ledger: t.ledger,
		Leftovers: leftovers(j, t), ByRange: !j.Part.Whole(),
		Folder: t.folder, To: t.to,
		CommitWait: cmp.Or(j.CommitWait, time.Duration(max(1, j.Part.N))*forward.CommitAge),
		Memory:     j.Memory, Disk: j.Disk, Other: missingFiles(j, t.folder.Name()), Means: j.Means,
		Log: j.Log,
	}
}

// missingFiles returns the size of the files without weights that a folder doesn't have yet. Of
// those that the run writes, the manifest comes last.
func missingFiles(j *job, folder string) (n int64) {
	if !j.Part.Whole() {
		return 0
	}
	if _, err := os.Lstat(filepath.Join(folder, names.Manifest)); err != nil {
		n = budget.WrittenBytes(j.Model, j.Plan)
	}
	for _, f := range j.carried() {
		st, err := os.Lstat(filepath.Join(folder, filepath.FromSlash(f.Path)))
		if err != nil || st.Size() != f.Size {
			n += f.Size
		}
	}
	return n
}

// checkDisk refuses a disk that is too small for the missing outputs, or for a file to copy.
func checkDisk(ctx context.Context, j *job, t *targets, sendAll bool) error {
	_, err := forwardJob(j, t).Divide()
	if err == nil && j.Part.Whole() {
		err = newCopier(j, t, sendAll).checkDisk(ctx)
	}
	return err
}

// leftovers lists the outputs of earlier runs that no commit names yet.
func leftovers(j *job, t *targets) []ledger.Output {
	if j.Push == nil {
		return nil
	}
	return slices.DeleteFunc(t.ledger.Outputs(), func(o ledger.Output) bool { return o.Committed })
}

// freeBuffers releases the read buffers of the Hub clients, so that the next stage can use the
// memory.
func freeBuffers(j *job, t *targets) {
	j.Source.FreeBuffers()
	if t.to != nil {
		t.to.FreeBuffers()
	}
}
