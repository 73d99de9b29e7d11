package convert

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
)

// Run converts a model. When it returns nil, the folder and the repo are complete, and every output
// was verified against the source, with two exceptions that the report names: outputs that were
// taken over, and a run that found everything up to date and looked no further. After an error, the
// same call continues where this one stopped. If ctx ends, the error is its cause.
func Run(ctx context.Context, opt Options) (*Report, error) {
	j, err := newJob(opt)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	a := attempts{job: j, tries: map[try]int{}, lessons: lessons{failed: map[string]bool{}}}
	report, err := a.run(ctx)
	err = errors.Join(err, a.close(err == nil))
	if report != nil {
		report.Made.Seconds = time.Since(start).Seconds()
		report.Made.Stages = j.Progress.Stages()
	}
	return report, err
}

// attempt makes what is missing and leaves finished work alone. It makes every output, proves every
// source file, and finishes.
func (s *state) attempt(ctx context.Context) (*Report, error) {
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

// convert makes every output that is not done.
func (s *state) convert(ctx context.Context) error {
	job := s.forwardJob()
	division, err := job.Divide()
	if err != nil {
		return err
	}
	// an earlier run with less disk has uploaded some already, and only a commit makes them readable
	gone := func(o ledger.Output) bool { return !o.Here }
	job.Wait = s.CommitWait == 0 && s.Part.Whole() && budget.Wait(s.Plan, s.outputs, division.Disk) &&
		!slices.ContainsFunc(job.Leftovers, gone)
	if err := forward.Make(ctx, job); err != nil {
		return err
	}
	return s.report().checkGain()
}

// release reports which commit has the result, and removes what the work needed there.
func (s *state) release(ctx context.Context, report *Report) {
	report.Target.Commit = s.to.Where().Commit
	if err := s.to.CleanUp(ctx); err != nil {
		s.Log.Warn("the target is complete, but its work branch couldn't be removed", "err",
			err)
	}
}
