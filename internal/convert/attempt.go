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
	"github.com/df11-convert/df11-convert/internal/names"
)

// forwardJob returns the job for what is still to be made.
func (s *state) forwardJob() *forward.Job {
	return &forward.Job{
		Source: s.Source, Model: s.Model, Outputs: s.Part.Of(s.outputs), Ledger: s.ledger,
		Leftovers: s.leftovers(), ByRange: !s.Part.Whole(),
		Folder: s.folder, To: s.to,
		CommitWait: cmp.Or(s.CommitWait, time.Duration(max(1, s.Part.N))*forward.CommitAge),
		Memory:     s.Memory, Disk: s.Disk, Other: s.missingFiles(), Means: s.Means, Log: s.Log,
	}
}

// missingFiles returns the size of the files without weights that the folder doesn't have yet. Of
// those that the run writes, the manifest comes last.
func (s *state) missingFiles() (n int64) {
	if !s.Part.Whole() {
		return 0
	}
	if _, err := os.Lstat(filepath.Join(s.folder.Name(), names.Manifest)); err != nil {
		n = budget.WrittenBytes(s.Model, s.Plan)
	}
	for _, f := range s.carried() {
		st, err := os.Lstat(filepath.Join(s.folder.Name(), filepath.FromSlash(f.Path)))
		if err != nil || st.Size() != f.Size {
			n += f.Size
		}
	}
	return n
}

// checkDisk refuses a disk that is too small for the missing outputs, or for a file to copy.
func (s *state) checkDisk(ctx context.Context) error {
	_, err := s.forwardJob().Divide()
	if err == nil && s.Part.Whole() {
		err = s.copier().checkDisk(ctx)
	}
	return err
}

// leftovers lists the outputs of earlier runs that no commit names yet.
func (s *state) leftovers() []ledger.Output {
	if s.Push == nil {
		return nil
	}
	return slices.DeleteFunc(s.ledger.Outputs(), func(o ledger.Output) bool { return o.Committed })
}
