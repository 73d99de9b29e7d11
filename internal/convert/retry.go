package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A try is an attempt because of a subject: a file, or a repo.
type try struct {
	remedy  *remedy
	subject string
}

// again calls f until it succeeds, or until its error ends the conversion. Nothing else in this
// package repeats the work of a conversion.
func (r *Run) again(ctx context.Context, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if err := r.after(ctx, err); err != nil {
			return err
		}
	}
}

// after returns nil if another attempt makes sense, and has undone what the failed one got wrong.
// Otherwise it returns the error that ends the conversion.
func (r *Run) after(ctx context.Context, err error) error {
	for _, m := range remedies {
		if r.targets == nil && !m.closed {
			continue
		}
		subject, readErr := m.finds(ctx, r, err)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		if subject == "" {
			continue
		}
		t := try{m, subject}
		if r.tries[t]++; r.tries[t] > m.again {
			if m.wrong {
				err = errors.Join(err, m.undo(ctx, r, subject))
			}
			if m.last != "" {
				return fmt.Errorf("%w; %s", err, strings.ReplaceAll(m.last, "{file}", subject))
			}
			return err
		}
		r.job.Log.Warn(m.says, "of", subject, "err", err)
		return m.undo(ctx, r, subject)
	}
	return err
}

// A remedy is for one cause of failed attempts.
type remedy struct {
	again int    // how many more attempts a subject gets
	says  string // what goes on
	last  string // what the error adds after the last of them, with {file}; may be ""
	// wrong means that what was made can't stay, even after the last attempt
	wrong bool
	// closed means that it also helps if the targets can't be opened
	closed bool
	// finds returns the subject of a failure: a file, or the repo; "" if it has another cause
	finds func(ctx context.Context, r *Run, err error) (subject string, readErr error)
	// undo undoes what the failed attempt got wrong about the subject
	undo func(ctx context.Context, r *Run, subject string) error
}

// remedies are tried in this order. The first that finds its cause in a failure decides.
var remedies = []*remedy{
	{ // usually another machine was faster, and the second time works
		again:  branchTries - 1,
		says:   "the branch that prepares the target was removed: inspecting the target again",
		closed: true,
		finds:  inTarget(func(_ *Run, err error) bool { return errors.Is(err, publish.ErrBranchGone) }),
		undo:   func(_ context.Context, r *Run, _ string) error { return r.close(false) },
	},
	{ // then it's rebuilt again, even if its hash was right meanwhile
		again: 1,
		says:  "the outputs don't give back a source file: making them again",
		last:  "so it was, too, before its outputs were made again from the whole file",
		finds: func(_ context.Context, _ *Run, err error) (string, error) {
			if e, ok := errors.AsType[*back.RebuildError](err); ok {
				return e.File, nil
			}
			return "", nil
		},
		undo: func(ctx context.Context, r *Run, file string) error {
			r.lessons.failed[file] = true
			return readAgain(ctx, r, file)
		},
	},
	{ // weights or carried
		again: sourceReads - 1,
		says:  "source file seems wrong: reading it again",
		last:  fmt.Sprintf("{file} was read %d times and was never the published file", sourceReads),
		finds: func(_ context.Context, _ *Run, err error) (string, error) {
			return model.WrongFile(err), nil
		},
		undo: readAgain,
	},
	{ // a bit may have changed on its way from the Hub
		again: sourceReads - 1,
		says:  "source file came with other values than now: reading it again",
		last:  fmt.Sprintf("{file} was read %d times and came with other bytes each time", sourceReads),
		finds: func(ctx context.Context, r *Run, err error) (string, error) {
			return r.job.misread(ctx, err)
		},
		undo: readAgain,
	},
	{ // by a program that has mapped it, so its time stays
		again: sourceReads - 1,
		says:  "source file was written to: converting it again",
		wrong: true,
		finds: func(_ context.Context, _ *Run, err error) (string, error) {
			if e, ok := errors.AsType[*model.ChangedError](err); ok && e.Read {
				return e.File, nil
			}
			return "", nil
		},
		undo: readAgain,
	},
	{
		again: 1,
		says:  "outputs of earlier runs aren't what they should be: making them again",
		finds: inTarget(func(r *Run, err error) bool {
			return back.IsFault(err) &&
				slices.ContainsFunc(r.targets.ledger.Outputs(), ofEarlierRun)
		}),
		undo: func(_ context.Context, r *Run, _ string) error { return r.targets.forget(ofEarlierRun) },
	},
	{ // the storage lost them after an upload, or the Hub only claimed to have copied them
		again: 1,
		says:  "the target lost files that were uploaded or copied: sending them again",
		finds: inTarget(func(_ *Run, err error) bool { return errors.Is(err, hub.ErrMissingObject) }),
		undo: func(_ context.Context, r *Run, _ string) error {
			r.lessons.sendAll = true
			return r.targets.forget(func(o ledger.Output) bool {
				return o.Uploaded && !o.Committed
			})
		},
	},
}

const (
	// branchTries is how often a run opens the target if its branch is removed.
	branchTries = 3
	// sourceReads is how often it reads a source file whose bytes aren't the published ones.
	sourceReads = 3
)

// inTarget finds a cause whose subject is the target.
func inTarget(is func(*Run, error) bool) func(context.Context, *Run, error) (string, error) {
	return func(_ context.Context, r *Run, err error) (string, error) {
		if !is(r, err) {
			return "", nil
		}
		return r.job.target(), nil
	}
}

// readAgain forgets what was made from a source file, so that it's read again.
func readAgain(ctx context.Context, r *Run, file string) error {
	r.job.Source.Recheck(ctx, file)
	return r.targets.forgetFile(file, r.job.madeFrom(file))
}

// madeFrom returns the outputs that are made from a source file.
func (j *job) madeFrom(file string) []*spans.Output {
	at := slices.IndexFunc(j.Model.Listing.Weights,
		func(w plan.WeightFile) bool { return w.Path == file })
	isFrom := j.isFrom(at)
	return slices.DeleteFunc(slices.Clone(j.outputs),
		func(o *spans.Output) bool { return !isFrom(o) })
}

func ofEarlierRun(o ledger.Output) bool { return !o.Made }
