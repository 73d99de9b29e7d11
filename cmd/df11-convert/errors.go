package main

import (
	"errors"
	"fmt"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/estimate"
	"github.com/df11-convert/df11-convert/internal/exactf32"
	"github.com/df11-convert/df11-convert/internal/filelock"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/proof"
	"github.com/df11-convert/df11-convert/internal/target"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// Exit codes, as the README lists them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitWrong       = 3 // something about the target is wrong: structure, hash or bits
	exitAuth        = 4
	exitRefused     = 5 // not convertible
	exitInterrupted = 130
)

// usageError is a wrong command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// hinted carries advice beside an error.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// as reports whether err wraps a T.
func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func exitCode(err error) int {
	switch {
	case as[usageError](err):
		return exitUsage
	case as[*verify.MismatchError](err), as[*verify.StructureError](err), as[*model.InvalidError](err):
		return exitWrong
	case errors.Is(err, hub.ErrUnauthorized), errors.Is(err, hub.ErrGated), errors.Is(err, hub.ErrForbidden):
		return exitAuth
	case as[*plan.RefusedError](err), as[*pipeline.StrictError](err), as[*proof.AliasError](err), as[*exactf32.InexactError](err):
		return exitRefused
	}
	return exitError
}

// kindHints says what the user can do about errors of one kind. The first kind that fits an error counts.
var kindHints = []struct {
	is   func(error) bool
	hint string
}{
	{as[*model.CacheError], "choose another folder for the cache with HF_HUB_CACHE, or leave out --cache"},
	{target.IsDiskFull, "free some space, or choose another disk with --work-dir or -o; what is done is kept"},
	{as[*estimate.BudgetError], "free some space, choose another disk with --work-dir or -o, or split the work with --shard"},
	{as[*estimate.MemoryError], "give it more with --memory, or no budget"},
	{as[*target.SourceTargetError], "choose another target with -o or --repo-id"},
	{as[*target.TakenError], "two runs have one target: give this one another with --repo-id or -o, or let the other one end and look at what it has made"},
	{as[*target.VisibilityError], "choose a private target, or --public if the licence allows it"},
	{as[*model.SourceError], "the bytes that arrived are not the published ones: the file is damaged at the source, or on its way"},
	{as[*pipeline.StrictError], "without --strict such units stay in BF16; plan and card say so"},
	{as[*target.OwnInputError], "choose a folder outside of it with -o"},
	{func(err error) bool { return errors.Is(err, proof.ErrNoManifest) || errors.Is(err, pipeline.ErrNoSum) }, "name the original with --against"},
	{as[*proof.LeftOutError], "verify --level full compares all that was kept with the original"},
	{as[*exactf32.InexactError], "convert the model to BF16 yourself first, if rounding is what you want"},
}

// hints gathers what the user can do about an error.
func hints(err error) (hs []string) {
	add := func(h string) {
		if h != "" {
			hs = append(hs, h)
		}
	}
	if h, ok := errors.AsType[hinted](err); ok {
		add(h.hint)
	}
	if r, ok := errors.AsType[*plan.RefusedError](err); ok {
		add(r.Hint)
	}
	if b, ok := errors.AsType[*pipeline.BrokenSourceError](err); ok {
		add(b.Hint())
		return hs
	}
	add(hub.Hint(err))
	if f, ok := errors.AsType[*target.ConflictError](err); ok {
		if len(f.Overwritten) > 0 {
			add("choose another target with -o or --repo-id, or --force if they may go")
		}
		if len(f.Files) > 0 {
			add("the loader would read those files too: choose an empty target, or --force if they may stay")
		}
	}
	if f, ok := errors.AsType[*target.FolderError](err); ok && !target.IsDiskFull(err) {
		add(folderHint(f))
		return hs
	}
	if o, ok := errors.AsType[*target.OccupiedError](err); ok {
		add("choose another folder with -o, or --force " + either(len(o.Replaced) > 0, "if they may go", "if they may stay; a loader may take them for the model's"))
	}
	for _, k := range kindHints {
		if k.is(err) {
			add(k.hint)
			break
		}
	}
	if len(hs) == 0 && as[usageError](err) {
		add("see df11-convert --help")
	}
	return hs
}

// folderHint says what to do about a folder that can't be used.
func folderHint(f *target.FolderError) string {
	flag := either(f.Stays, "-o", "--work-dir")
	if errors.Is(f, filelock.ErrLocked) {
		return "wait until the other run ends, or choose another folder with " + flag
	}
	return "choose a folder that can be written with " + flag
}
