package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
)

// sourceReads is how often a run reads a source file that turns out not to be the published one.
const sourceReads = 3

// FetchError is an error that came up while a source file was read.
type FetchError struct {
	File string
	Err  error
}

func (e *FetchError) Error() string { return "fetch " + e.File + ": " + e.Err.Error() }

func (e *FetchError) Unwrap() error { return e.Err }

// ProofError says that outputs, put together again, do not give the source file that they were made from.
type ProofError struct {
	File string
	Err  error
}

func (e *ProofError) Error() string { return "prove " + e.File + ": " + e.Err.Error() }

func (e *ProofError) Unwrap() error { return e.Err }

// BrokenSourceError says that a source file was never what the plan was made for, however often it was read.
type BrokenSourceError struct {
	File, Commit string
	Reads        int
	Err          error // of the last time
}

func (e *BrokenSourceError) Error() string {
	return fmt.Sprintf("source file %s was read %d times and was never the published one: %v", e.File, e.Reads, e.Err)
}

func (e *BrokenSourceError) Unwrap() error { return e.Err }

// Hint says what can be done about it.
func (e *BrokenSourceError) Hint() string {
	if e.Commit == "" {
		return e.File + " is damaged where it lies, or on its way: check the disk and the memory of this machine"
	}
	return fmt.Sprintf("a file of commit %s must never change: look at the history of the repo; if it was rewritten, convert its present "+
		"revision, else %s is damaged in the hub's store or on its way: try again later or tell the repo's owners", e.Commit, e.File)
}

// brokenFile names the source file whose bytes an error found to be wrong; "" for any other error.
func brokenFile(err error) string {
	if e := (*SourceError)(nil); errors.As(err, &e) {
		return e.File
	}
	if e := (*HeaderError)(nil); errors.As(err, &e) {
		return e.File
	}
	if e := (*ProofError)(nil); errors.As(err, &e) {
		return e.File
	}
	if e := (*FetchError)(nil); errors.As(err, &e) && (errors.Is(err, hub.ErrChanged) || errors.Is(err, hub.ErrCorrupt)) {
		return e.File // the commit is pinned, so it is the store that is wrong
	}
	return ""
}

// convertAndProve converts everything. What came from a source file that is not the published one is discarded, and the
// file is read again, a few times; so are outputs made again that the target's store has lost.
func (r *run) convertAndProve(ctx context.Context) error {
	reads, lost := map[string]int{}, false
	for {
		err := r.convertAll(ctx)
		if err == nil && r.Part.whole() {
			r.Progress.SetPhase("proof")
			err = r.proveUnchecked(ctx)
		}
		file := brokenFile(err)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case file != "":
			if reads[file]++; reads[file] == sourceReads {
				return &BrokenSourceError{File: file, Commit: r.Model.Commit, Reads: sourceReads, Err: err}
			}
			r.Log.Warn("source file is not what was published, reading it again", "file", file, "err", err)
			if d, ok := r.Source.(doubter); ok {
				d.Doubt(ctx, file)
			}
			if err := r.discard(file, err); err != nil {
				return err
			}
		case errors.Is(err, hub.ErrMissingObject) && !lost:
			lost = true
			r.Log.Warn("the target lost files that were uploaded, making them again", "err", err)
			r.distrustUploads()
		default:
			return err
		}
		r.Progress.SetPhase("convert")
	}
}

// discard forgets a source file and every output made from it. Bytes that were read by ranges are under no hash: of those
// the outputs of this run go, or all if a proof has failed.
func (r *run) discard(file string, cause error) error {
	proof := (*ProofError)(nil)
	failed := errors.As(cause, &proof)
	from := r.madeFrom(file)
	before := r.ledger.all()
	trusted := func(o Output) bool {
		return !slices.Contains(from, o.Path) || !failed && (r.adopted[o.Path] || r.streamed(o))
	}
	r.ledger.distrust(file)
	r.ledger.keep(trusted)
	r.doubt(file)
	if r.pub != nil {
		r.pub.ledger.distrust(file)
		r.pub.ledger.keep(trusted)
		r.pub.forget(r.ledger)
	}
	for _, t := range r.tasks {
		if slices.Contains(from, t.path) {
			if err := removeSpool(spoolPath(r.store.state, t)); err != nil {
				return err
			}
		}
	}
	for _, o := range before {
		if _, kept := r.ledger.output(o.Path); !kept && !o.Uploaded {
			if err := os.Remove(r.store.path(o.Path)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return r.store.saveJournal(r.ledger)
}

// doubt notes of the other files how far they were read, and that those are not proved any more whose outputs went.
func (r *run) doubt(file string) {
	for _, fs := range r.files {
		switch {
		case fs.path == file:
		case r.ledger.file(fs.path).Integrity == integrityProof && fs.firstPending(r.ledger.made, nothing) < fs.size:
			r.ledger.setFile(Checkpoint{File: fs.path})
		default:
			r.ledger.setFile(r.checkpointOf(fs))
		}
	}
}

// streamed tells whether an output names the bytes that it was made from, so that the hash of their file covers it.
func (r *run) streamed(o Output) bool { return len(o.Prefixes) > 0 }

// madeFrom lists the outputs that hold bytes of a source file.
func (r *run) madeFrom(file string) (paths []string) {
	for _, fs := range r.files {
		if fs.path != file {
			continue
		}
		for _, s := range fs.segs {
			for _, d := range s.dst {
				paths = append(paths, d.task.path)
			}
		}
	}
	return paths
}

// distrustUploads forgets outputs that only the target's store is said to have.
func (r *run) distrustUploads() {
	r.ledger.keep(func(o Output) bool {
		_, committed := r.pub.ledger.output(o.Path)
		return committed && !r.pub.waiting(o.Path) || !o.Uploaded
	})
	r.pub.forget(r.ledger)
}
