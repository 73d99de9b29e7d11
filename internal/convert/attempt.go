package convert

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
)

// forwardJob returns the job for what is still to be made.
func (s *state) forwardJob() *forward.Job {
	return &forward.Job{
		Source: s.Source, Model: s.Model, Outputs: s.Part.Of(s.outputs), Ledger: s.ledger,
		Leftovers: s.leftovers(), ByRange: !s.Part.Whole(),
		Folder: s.folder, To: s.to,
		CommitWait: cmp.Or(s.CommitWait, time.Duration(max(1, s.Part.N))*forward.CommitAge),
		Memory:     s.Memory, Disk: s.Disk, Copies: s.missingCopies(), Means: s.Means, Log: s.Log,
	}
}

// missingCopies returns the size of the files to copy that the folder doesn't have yet.
func (s *state) missingCopies() (n int64) {
	if !s.Part.Whole() {
		return 0
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
		err = s.checkCopies(ctx)
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
