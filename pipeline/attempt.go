package pipeline

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
)

// way returns the job for what is still to be made.
func (s *state) way() *forward.Job {
	return &forward.Job{
		Source: s.Source, Model: s.Model, Outputs: s.Part.Of(s.outputs), Ledger: s.ledger,
		Leftovers: s.leftovers(), ByRange: !s.Part.Whole(),
		Folder: s.folder, Repo: s.repo,
		CommitWait: cmp.Or(s.CommitWait, time.Duration(max(1, s.Part.N))*forward.CommitAge),
		Memory:     s.Memory, Disk: s.Disk, Means: s.Means, Log: s.Log,
	}
}

// checkDisk refuses a disk that is too small for the missing outputs, or for a file to copy.
func (s *state) checkDisk(ctx context.Context) error {
	disk, _, err := s.way().Divide()
	if err == nil && s.Part.Whole() {
		err = s.copier(disk).check(ctx)
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
