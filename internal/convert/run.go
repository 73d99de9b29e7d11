package convert

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A Run is one run of a conversion, with its targets open.
type Run struct {
	job     *job
	start   time.Time
	targets *targets // nil while they aren't open
	current *Report  // of targets that hold the result already, else nil
	lessons lessons
	tries   map[try]int
}

// lessons are what failed attempts have taught a run.
type lessons struct {
	sendAll bool // don't ask the Hub to copy files
	// source files that couldn't be rebuilt once, by path
	failed map[string]bool
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
	if err := r.again(ctx, r.open); err != nil {
		return nil, errors.Join(err, r.close(false))
	}
	return r, nil
}

// open opens the targets, unless they're open.
func (r *Run) open(ctx context.Context) (err error) {
	if r.targets != nil {
		return nil
	}
	if r.targets, err = openTargets(ctx, r.job, r.lessons.sendAll); err != nil {
		return err
	}
	r.current, err = upToDate(ctx, r.job, r.targets)
	if err == nil && r.current == nil {
		err = r.targets.folder.ReadOnly()
	}
	return err
}

// UpToDate reports whether the targets hold the result already, so that there's nothing to make.
func (r *Run) UpToDate() bool { return r.current != nil }

// Warnings lists what one should know of the result, beside the plan's warnings.
func (r *Run) Warnings() []string { return slices.Concat(r.job.notes, r.targets.advice) }

// Visibility returns the repo that the result goes to, and who may see it, as it was decided before
// anything was published.
func (r *Run) Visibility() (repo string, v publish.Visibility) {
	if r.targets.to == nil {
		return "", v
	}
	return r.targets.to.Where().Repo, r.targets.to.Visibility()
}

// LikelyBytes is about how large the weights of the whole result will be.
func (r *Run) LikelyBytes() int64 { return spans.LikelyBytes(r.job.outputs) }

// Convert makes what is missing. When its error is nil, the folder and the repo are complete, and
// every output was verified against the source, with two exceptions that the report names: outputs
// that were taken over, and targets that are up to date, of which nothing more was read. After an
// error, another run continues where this one stopped. If ctx ends, the error is its cause.
func (r *Run) Convert(ctx context.Context) (report *Report, err error) {
	err = r.again(ctx, func(ctx context.Context) (err error) {
		if err := r.open(ctx); err != nil {
			return err
		}
		if report = r.current; report == nil {
			report, err = attempt(ctx, r.job, r.targets, r.lessons)
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

// discard closes the folder without anything that this run and earlier ones made there, because no
// run can go on with it.
func (r *Run) discard() error {
	t := r.targets
	if r.targets = nil; t == nil {
		return nil
	}
	return errors.Join(t.ledger.Close(), t.folder.Discard())
}

// close closes the targets if they're open. With done, only the result stays.
func (r *Run) close(done bool) error {
	t := r.targets
	if r.targets = nil; t == nil {
		return nil
	}
	return t.close(done)
}

// attempt makes what is missing and leaves finished work alone. It makes every output, proves every
// source file, and finishes.
func attempt(ctx context.Context, j *job, t *targets, learned lessons) (*Report, error) {
	j.Progress.SetPhase("convert")
	if err := makeMissing(ctx, j, t); err != nil {
		return nil, err
	}
	if !j.Part.Whole() {
		return newReport(j, t), nil
	}
	j.Progress.SetPhase("rebuild")
	if err := rebuildUnchecked(ctx, j, t, learned.failed); err != nil {
		return nil, err
	}
	j.Progress.SetPhase("finish")
	return finish(ctx, j, t, learned.sendAll)
}
