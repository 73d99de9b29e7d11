package convert

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
	"github.com/df11-convert/df11-convert/internal/publish"
)

const (
	// sourceReads is how often a run reads a source file whose bytes aren't the published ones.
	sourceReads = 3
	// branchTries is how often a run opens the target if its branch is removed. Usually another
	// machine was faster, and the second time works.
	branchTries = 3
)

// brokenFile returns the source file whose bytes an error found not to be the published ones, or
// "" for other errors.
func brokenFile(err error) string {
	if e, ok := errors.AsType[*model.SourceError](err); ok {
		return e.File
	}
	if e, ok := errors.AsType[*model.ReadError](err); ok &&
		(errors.Is(err, hub.ErrChanged) || errors.Is(err, hub.ErrCorrupt)) {
		return e.File // the commit is pinned, so the storage is wrong
	}
	return ""
}

// retry decides after a failed attempt whether another one makes sense, and undoes what the failed
// one got wrong. Nothing else in this package repeats the work of a conversion. It repeats an
// attempt
//
//   - twice for each source file, weights or carried, whose bytes aren't the published ones, or
//     that a Hub sent with other values than before (see misread)
//   - once for each source file that can't be rebuilt from the outputs: it makes them again from the
//     whole file, and then rebuilds the file again, whatever else has shown it to be right
//   - once for faulty outputs of earlier runs: it forgets all of them
//   - once for files that the target's storage has lost after an upload, or after the Hub claimed to
//     have copied them
//   - twice for the run's branch in the target, which another run may have removed
type retry struct {
	state *state
	tries map[any]int // by cause: a sentinel error, or a file's path
}

// run makes one attempt after another until one succeeds, or until its error ends the conversion.
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

// allows counts a try for a cause, and reports whether it's within the limit.
func (r retry) allows(cause any, most int) bool {
	r.tries[cause]++
	return r.tries[cause] <= most
}

// after returns nil if another attempt makes sense, or else the error that ends the conversion.
func (r retry) after(ctx context.Context, err error) error {
	s := r.state
	if errors.Is(err, publish.ErrBranchGone) && r.allows(publish.ErrBranchGone, branchTries-1) {
		s.Log.Warn("the branch that prepares the target was removed: inspecting the target again",
			"repo", s.Push.Where().Repo)
		return s.close(false)
	}
	if s.folder == nil {
		return err // the targets can't be opened
	}
	if e, ok := errors.AsType[*back.RebuildError](err); ok {
		if s.failed[e.File] {
			return fmt.Errorf("%w; so it was, too, before its outputs were made again from the "+
				"whole file", err)
		}
		s.Log.Warn("the outputs don't give back a source file: making them again", "file", e.File,
			"err", e.Err)
		s.failed[e.File] = true
		s.Source.Recheck(ctx, e.File)
		return s.discard(e.File)
	}
	file, never := brokenFile(err), "was never the published file"
	if file == "" {
		misread, readErr := s.misread(ctx, err)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		file, never = misread, "came with other bytes each time"
	}
	if file != "" && r.allows(file, sourceReads-1) {
		s.Log.Warn("source file seems wrong: reading it again", "file", file, "err", err)
		s.Source.Recheck(ctx, file)
		return s.discard(file)
	}
	if file != "" {
		return fmt.Errorf("%w; %s was read %d times and %s", err, file, sourceReads, never)
	}
	if back.IsFault(err) && slices.ContainsFunc(s.ledger.Outputs(), ofEarlierRun) {
		s.Log.Warn("outputs of earlier runs aren't what they should be: making them again",
			"err", err)
		return s.forget(ofEarlierRun)
	}
	if errors.Is(err, hub.ErrMissingObject) && r.allows(hub.ErrMissingObject, 1) {
		s.Log.Warn("the target lost files that were uploaded or copied: sending them again", "err",
			err)
		s.sendAll = true
		return s.forget(func(o ledger.Output) bool { return o.Uploaded && !o.Committed })
	}
	return err
}

// discard forgets everything that was made from a source file, and removes it from the folder.
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

// forget forgets wrong outputs, and removes them from the folder.
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
