package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
)

const (
	// sourceReads is how often a run reads a source file that turns out not to be the published
	// one.
	sourceReads = 3
	// branchTries bounds how often a run opens the target because its branch was removed. Mostly
	// another machine was quicker, and once is enough.
	branchTries = 3
)

// BrokenSourceError says that a source file was never what the plan was made for, however often it
// was read.
type BrokenSourceError struct {
	File, Commit string
	Reads        int
	Err          error // of the last time
}

func (e *BrokenSourceError) Error() string {
	return fmt.Sprintf("%v; it was read %d times and was never the published file", e.Err, e.Reads)
}

func (e *BrokenSourceError) Unwrap() error { return e.Err }

// Hint says what can be done about it.
func (e *BrokenSourceError) Hint() string {
	if e.Commit == "" {
		return e.File +
			" is damaged where it lies, or on its way: check the disk and the memory of this machine"
	}
	return fmt.Sprintf(
		"a file of commit %s must never change: look at the history of the repo; if it was rewritten, convert its present "+
			"revision, else %s is damaged in the hub's store or on its way: try again later or tell the repo's owners", e.Commit, e.File)
}

// brokenFile names the source file whose bytes an error found to be wrong; "" for any other error.
func brokenFile(err error) string {
	if e, ok := errors.AsType[*model.SourceError](err); ok {
		return e.File
	}
	if e, ok := errors.AsType[*model.HeaderError](err); ok {
		return e.File
	}
	if e, ok := errors.AsType[*back.RebuildError](err); ok {
		return e.File
	}
	if e, ok := errors.AsType[*model.ReadError](err); ok &&
		(errors.Is(err, hub.ErrChanged) || errors.Is(err, hub.ErrCorrupt)) {
		return e.File // the commit is pinned, so it is the store that is wrong
	}
	return ""
}

// retry decides after a failed attempt whether another one makes sense, and takes back what the
// failed one got wrong. Nothing else in this package repeats the work of a conversion. An attempt
// is repeated
//
//   - twice for each source file, weights or carried, whose bytes aren't the published ones;
//     then a BrokenSourceError ends the run
//   - once for each file of a Hub with F32 values that BF16 can't hold: a bit may be wrong on its way
//   - once for outputs of earlier runs that are at fault: it forgets all of them
//   - once for files that the target's store has lost, whether they were uploaded or the Hub said
//     that it has copied them
//   - twice for the run's branch in the target, which another run may have removed
//
// The context ends all of it.
type retry struct {
	state *state
	tries map[any]int // that were given, by cause: a sentinel error, or a file's path
}

// run makes one attempt after another, until one succeeds or its error ends the conversion.
func (r retry) run(ctx context.Context) (*Report, error) {
	for {
		report, err := r.state.attempt(ctx)
		if err == nil || ctx.Err() != nil {
			return report, err
		}
		if err := r.after(ctx, err); err != nil {
			return nil, err
		}
	}
}

// allows counts a try, and reports whether a cause may have it.
func (r retry) allows(cause any, most int) bool {
	r.tries[cause]++
	return r.tries[cause] <= most
}

// after returns nil if another attempt makes sense, else the error that ends the conversion.
func (r retry) after(ctx context.Context, err error) error {
	s := r.state
	if errors.Is(err, target.ErrBranchGone) && r.allows(target.ErrBranchGone, branchTries-1) {
		s.Log.Warn("the branch that prepares the target was removed, looking at the target again",
			"repo", s.Push.Repo)
		return s.close(false)
	}
	if s.folder == nil {
		return err // the targets can't be opened
	}
	if file := brokenFile(err); file != "" {
		if !r.allows(file, sourceReads-1) {
			return &BrokenSourceError{File: file, Commit: s.Model.Commit, Reads: sourceReads,
				Err: err}
		}
		s.Log.Warn("source file is not what was published, reading it again", "file", file, "err",
			err)
		s.Source.Recheck(ctx, file)
		return s.discard(file)
	}
	if e, ok := errors.AsType[*spans.InexactError](err); ok && !s.Model.Local &&
		r.allows(e.File, 1) {
		s.Log.Warn("source file has values that BF16 cannot hold, or a wrong bit on its way: "+
			"reading it again", "file", e.File, "err", err)
		return s.discard(e.File)
	}
	if back.IsFault(err) && slices.ContainsFunc(s.ledger.Outputs(), ofEarlierRun) {
		s.Log.Warn("outputs of earlier runs are not what they should be, making them again",
			"err", err)
		return s.forget(ofEarlierRun)
	}
	if errors.Is(err, hub.ErrMissingObject) && r.allows(hub.ErrMissingObject, 1) {
		s.Log.Warn("the target lost files that were uploaded or copied, sending them again", "err",
			err)
		s.sendAll, s.copied = true, nil
		return s.forget(func(o ledger.Output) bool { return o.Uploaded && !o.Committed })
	}
	return err
}

// discard forgets everything that was made of a source file, and removes it from the folder.
func (s *state) discard(file string) error {
	made := map[string]bool{}
	at := slices.IndexFunc(s.Model.Listing.Weights,
		func(w plan.WeightFile) bool { return w.Path == file })
	for _, o := range s.outputs {
		if slices.Contains(o.Files(), at) {
			made[o.Path] = true
			s.ledger.ForgetTensors(o.Path)
		}
	}
	s.ledger.ForgetFile(file)
	return s.forget(func(o ledger.Output) bool { return made[o.Path] })
}

func ofEarlierRun(o ledger.Output) bool { return !o.Made }

// forget forgets outputs that are wrong, and removes them from the folder.
func (s *state) forget(wrong func(ledger.Output) bool) error {
	for _, o := range s.ledger.Outputs() {
		if o.Here && wrong(o) {
			if err := s.folder.Remove(o.Path); err != nil {
				return err
			}
		}
	}
	s.ledger.Keep(func(o ledger.Output) bool { return !wrong(o) })
	return nil
}
