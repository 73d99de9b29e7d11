package pipeline

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// way returns the job for what is still to be made.
func (s *state) way() *forward.Job {
	return &forward.Job{
		Source: s.Source, Model: s.source, Outputs: s.Part.Of(s.outputs), Ledger: s.ledger,
		Leftovers: s.leftovers(), ByRange: !s.Part.Whole(),
		Folder: s.folder, Repo: s.repo,
		CommitWait: cmp.Or(s.CommitWait, time.Duration(max(1, s.Part.N))*forward.CommitAge),
		Memory:     s.Memory, Disk: s.Disk, GPU: s.GPU, Progress: s.Progress, Log: s.Log,
	}
}

// checkDisk refuses a disk that is too small for the missing outputs, or for a file to copy.
func (s *state) checkDisk(ctx context.Context) error {
	disk, err := s.way().FreeDisk()
	if err != nil || !s.Part.Whole() {
		return err
	}
	return s.copier(disk).check(ctx)
}

// pending lists the outputs of the run's part that are not done.
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
