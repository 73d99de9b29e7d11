package convert

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A Run is one run of a conversion, with its targets open.
type Run struct {
	job     *job
	start   time.Time
	open    *state  // nil while the targets aren't open
	current *Report // of targets that hold the result already, else nil
	lessons lessons
	tries   map[try]int
}

// Open opens the targets of a conversion, refuses those that hold something else, and finds out
// what is done. End the run with Convert. Only until then it answers questions.
func Open(ctx context.Context, opt Options) (*Run, error) {
	j, err := newJob(opt)
	if err != nil {
		return nil, err
	}
	r := &Run{job: j, start: time.Now(), tries: map[try]int{},
		lessons: lessons{failed: map[string]bool{}}}
	if err := r.again(ctx, r.openTargets); err != nil {
		return nil, errors.Join(err, r.close(false))
	}
	return r, nil
}

// openTargets opens the targets, unless they're open.
func (r *Run) openTargets(ctx context.Context) (err error) {
	if r.open != nil {
		return nil
	}
	if r.open, err = r.job.open(ctx, &r.lessons); err != nil {
		return err
	}
	r.current, err = r.open.upToDate(ctx)
	return err
}

// UpToDate reports whether the targets hold the result already, so that there's nothing to make.
func (r *Run) UpToDate() bool { return r.current != nil }

// Warnings lists what one should know of the result, beside the plan's warnings.
func (r *Run) Warnings() []string { return slices.Concat(r.job.notes, r.open.notes) }

// Visibility returns the repo that the result goes to, and who may see it, as it was decided before
// anything was published.
func (r *Run) Visibility() (repo string, v publish.Visibility) {
	if r.open.to == nil {
		return "", v
	}
	return r.open.to.Where().Repo, r.open.to.Visibility()
}

// LikelyBytes is about how large the weights of the whole result will be.
func (r *Run) LikelyBytes() int64 { return spans.LikelyBytes(r.job.outputs) }

// Convert makes what is missing. When its error is nil, the folder and the repo are complete, and
// every output was verified against the source, with two exceptions that the report names: outputs
// that were taken over, and targets that are up to date, of which nothing more was read. After an
// error, another run continues where this one stopped. If ctx ends, the error is its cause.
func (r *Run) Convert(ctx context.Context) (report *Report, err error) {
	err = r.again(ctx, func(ctx context.Context) (err error) {
		if err := r.openTargets(ctx); err != nil {
			return err
		}
		if report = r.current; report == nil {
			report, err = r.open.attempt(ctx)
		}
		return err
	})
	if refused, ok := errors.AsType[*plan.RefusedError](err); ok && refused.Hint == hint.NoGain {
		return nil, errors.Join(err, r.discard())
	}
	if err = errors.Join(err, r.close(err == nil)); err != nil {
		return nil, err
	}
	report.Made.Seconds = time.Since(r.start).Seconds()
	report.Made.Stages = r.job.Progress.Stages()
	return report, nil
}

// discard closes the folder without anything that this run and earlier ones made there, because no run
// can go on with it.
func (r *Run) discard() error {
	s := r.open
	if r.open = nil; s == nil {
		return nil
	}
	return errors.Join(s.ledger.Close(), s.folder.Discard())
}

// close closes the targets if they're open. With done, only the result stays.
func (r *Run) close(done bool) error {
	s := r.open
	if r.open = nil; s == nil {
		return nil
	}
	return s.close(done)
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
	if !s.Part.Whole() { // other parts may hold what DF11 can
		return nil
	}
	var units []metadata.Unit
	for _, o := range s.ledger.Outputs() {
		units = append(units, o.Units...)
	}
	return metadata.CheckGain(units)
}

// freeBuffers releases the read buffers of the Hub clients, so that the next stage can use the
// memory.
func (s *state) freeBuffers() {
	s.Source.FreeBuffers()
	if s.to != nil {
		s.to.FreeBuffers()
	}
}

// release reports which commit has the result, and removes what the work needed there.
func (s *state) release(ctx context.Context, report *Report) {
	if s.to == nil {
		return
	}
	report.Target.Commit = s.to.Where().Commit
	if err := s.to.CleanUp(ctx); err != nil {
		s.Log.Warn("the target is complete, but its work branch couldn't be removed", "err",
			err)
	}
}
