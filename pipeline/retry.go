package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// sourceReads is how often a run reads a source file that turns out not to be the published one.
const sourceReads = 3

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
	if e, ok := errors.AsType[*fetch.HeaderError](err); ok {
		return e.File
	}
	if e, ok := errors.AsType[*back.RebuildError](err); ok {
		return e.File
	}
	if e, ok := errors.AsType[*fetch.Error](err); ok &&
		(errors.Is(err, hub.ErrChanged) || errors.Is(err, hub.ErrCorrupt)) {
		return e.File // the commit is pinned, so it is the store that is wrong
	}
	return ""
}

// retry decides after a failed attempt whether another one makes sense, and takes back what the
// failed one got wrong.
type retry struct {
	c     *conversion
	reads map[string]int // by source file that turned out to be broken
	lost  bool           // the target's store has lost files before
}

// after gives err back if it ends the conversion.
func (r *retry) after(ctx context.Context, err error) error {
	if file := brokenFile(err); file != "" {
		if r.reads[file]++; r.reads[file] == sourceReads {
			return &BrokenSourceError{File: file, Commit: r.c.Model.Commit, Reads: sourceReads,
				Err: err}
		}
		r.c.Log.Warn("source file is not what was published, reading it again", "file", file, "err",
			err)
		r.c.Source.Recheck(ctx, file)
		return r.c.discard(file)
	}
	if e, ok := errors.AsType[*spans.InexactError](err); ok && !r.c.Model.Local &&
		r.reads[e.File] == 0 {
		r.reads[e.File]++
		r.c.Log.Warn(
			"source file has values that BF16 cannot hold, or a wrong bit on its way: reading it again", "file", e.File, "err", err)
		return r.c.discard(e.File)
	}
	if back.IsFault(err) && slices.ContainsFunc(r.c.ledger.Outputs(), ofEarlierRun) {
		r.c.Log.Warn("outputs of earlier runs are not what they should be, making them again",
			"err", err)
		return r.c.forget(ofEarlierRun)
	}
	if errors.Is(err, hub.ErrMissingObject) && !r.lost {
		r.lost = true
		r.c.Log.Warn("the target lost files that were uploaded, making them again", "err", err)
		return r.c.forget(func(o ledger.Output) bool { return o.Uploaded && !o.Committed })
	}
	return err
}

// discard forgets everything that was made of a source file, and removes it from the folder.
func (c *conversion) discard(file string) error {
	made := map[string]bool{}
	at := slices.IndexFunc(c.Model.Listing.Weights,
		func(w plan.WeightFile) bool { return w.Path == file })
	for _, o := range c.outputs {
		if slices.Contains(o.Files(), at) {
			made[o.Path] = true
			c.ledger.ForgetTensors(o.Path)
		}
	}
	c.ledger.ForgetFile(file)
	return c.forget(func(o ledger.Output) bool { return made[o.Path] })
}

func ofEarlierRun(o ledger.Output) bool { return !o.Made }

// forget forgets outputs that are wrong, and removes them from the folder.
func (c *conversion) forget(wrong func(ledger.Output) bool) error {
	for _, o := range c.ledger.Outputs() {
		if o.Here && wrong(o) {
			if err := c.folder.Remove(o.Path); err != nil {
				return err
			}
		}
	}
	c.ledger.Keep(func(o ledger.Output) bool { return !wrong(o) })
	return nil
}
