package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/df11-convert/df11-convert/internal/forward"
)

// Run converts a model. When it returns nil, the folder and the repo are complete, and every output
// was verified against the source, unless the report says that all of it was there and nothing was
// looked at. After an error the same call goes on where this one stopped. Work that is cancelled
// ends with the context's cause.
func Run(ctx context.Context, opt Options) (*Report, error) {
	j, err := newJob(opt)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	s := &state{job: j, source: j.Model}
	report, err := retry{s, map[any]int{}}.run(ctx)
	err = errors.Join(err, s.close(err == nil))
	if report != nil {
		report.Made.Seconds, report.Made.Stages = time.Since(start).Seconds(),
			j.Progress.Stages()
	}
	return report, err
}

// attempt makes what is missing, and changes nothing of what is finished: it opens the targets if
// they aren't open, makes every output, proves every source file, and finishes.
func (s *state) attempt(ctx context.Context) (*Report, error) {
	if s.folder == nil {
		if err := s.open(ctx); err != nil {
			return nil, err
		}
		if report, err := s.upToDate(ctx); report != nil || err != nil {
			return report, err
		}
	}
	s.Progress.SetPhase("convert")
	if err := s.convert(ctx); err != nil {
		return nil, err
	}
	if !s.Part.Whole() {
		return s.report(), nil
	}
	s.Progress.SetPhase("rebuild")
	if err := s.rebuildUnchecked(ctx); err != nil {
		return nil, err
	}
	s.Progress.SetPhase("finish")
	return s.finish(ctx)
}

// upToDate returns the report of a run that finds everything in place, and nil for any other run.
// It writes no file, but removes branches that earlier runs have left in the repo.
func (s *state) upToDate(ctx context.Context) (*Report, error) {
	if len(s.pending())+len(s.leftovers()) > 0 {
		return nil, nil
	}
	report := s.report()
	report.Verified.UpToDate, report.Verified.Now = true, false
	if !s.Part.Whole() {
		return report, nil
	}
	want, err := s.expect(ctx, s.ledger.Outputs())
	if err != nil {
		return nil, err
	}
	for _, found := range s.found() {
		if !want.in(found) {
			return nil, nil
		}
		report.Target.ManifestSHA256 = found.ManifestSHA256()
	}
	s.leaveRepo(ctx, report)
	return report, nil
}

// convert makes every output that is not done.
func (s *state) convert(ctx context.Context) error {
	if err := s.checkDisk(ctx); err != nil {
		return err
	}
	if err := forward.Make(ctx, s.way()); err != nil {
		return err
	}
	return s.report().checkGain()
}

// leaveRepo reports which commit has the result, and removes the branches of unfinished work.
func (s *state) leaveRepo(ctx context.Context, report *Report) {
	if s.repo == nil {
		return
	}
	report.Target.Commit = s.repo.LastCommit()
	if err := s.repo.RemoveBranches(ctx); err != nil {
		s.Log.Warn("the target is complete, but branches of unfinished work are left there", "err",
			err)
	}
}
