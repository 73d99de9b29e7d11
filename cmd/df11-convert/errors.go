package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/verify"
)

// Exit codes, as docs/troubleshooting.md lists them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitWrong       = 3 // the DF11 model is damaged, or differs
	exitAuth        = 4
	exitRefused     = 5 // not convertible
	exitFiles       = 6 // files next to the weights differ, with verify --strict-files
	exitInterrupted = 130
)

// usageError is a wrong command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// hinted is an error with a hint.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

func (h hinted) Hint() string { return h.hint }

// wraps reports whether err wraps a T.
func wraps[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// kind is a kind of error: its name in JSON and in docs/troubleshooting.md, its exit code, and a
// hint for errors that have none of their own.
type kind struct {
	name string
	is   func(error) bool
	code int
	hint string
}

// oneOf returns a function that reports whether an error wraps one of the sentinels.
func oneOf(sentinels ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(sentinels, func(s error) bool { return errors.Is(err, s) })
	}
}

// kinds lists all kinds of errors. The first match counts; the last one matches any error.
var kinds = []kind{
	{"interrupted", oneOf(errInterrupted), exitInterrupted, ""},
	{"usage", wraps[usageError], exitUsage, ""},
	{"output", wraps[outputError], exitError, ""},
	{"disk_full", disk.IsNoSpace, exitError, "free some space, or use another disk"},
	{"disk_budget", wraps[*budget.DiskError], exitError, "raise --disk, or leave it out"},
	{"memory_budget", func(err error) bool {
		return wraps[*budget.MemoryError](err) || wraps[*model.MemoryError](err) ||
			errors.Is(err, safetensors.ErrMemory)
	}, exitError, "raise --memory, or leave it out"},
	{"structure", wraps[*verify.StructureError], exitWrong, ""},
	{"other_original", wraps[otherOriginal], exitWrong, ""},
	{"f32_not_exact", refuses[*spans.InexactError], exitRefused,
		"convert the model to BF16 yourself first, if rounding is what you want"},
	{"aliases_differ", refuses[*forward.AliasError], exitRefused, ""},
	{"mismatch", isOfPair, exitWrong, ""},
	{"files_differ", wraps[besideError], exitFiles, ""},
	{"not_df11", oneOf(model.ErrNoDF11Config), exitError, ""},
	{"invalid", wraps[*model.InvalidError], exitWrong, ""},
	{"unauthorized", oneOf(hub.ErrUnauthorized, hub.ErrTrustedPublisher), exitAuth, ""},
	{"gated", oneOf(hub.ErrGated), exitAuth, ""},
	{"forbidden", oneOf(hub.ErrForbidden), exitAuth, ""},
	{"not_convertible", wraps[*plan.RefusedError], exitRefused, ""},
	{"conflict", func(err error) bool {
		return wraps[*publish.ConflictError](err) || errors.Is(err, errForeign)
	}, exitError, "choose another target with -o or --repo-id (a work folder with --work-dir), or add --force to write there anyway"},
	{"newer_target", wraps[*publish.NewerError], exitError,
		"update df11-convert, or add --force to make it again as this version does"},
	{"source_is_target", wraps[*publish.SourceTargetError], exitError,
		"choose another target with -o or --repo-id"},
	{"target_taken", wraps[*publish.TakenError], exitError,
		"choose another target with --repo-id or -o, or wait until the other run ends"},
	{"target_lost", wraps[*publish.LostError], exitError, ""},
	{"target_wrong", wraps[*hub.WitnessError], exitError, ""},
	{"visibility", wraps[*publish.VisibilityError], exitError,
		"make it private in its settings, choose another target with --repo-id, or allow it with --public if the license does"},
	{"card", wraps[*convert.CardError], exitError,
		"name the license with --license ID, such as mit, or fix the front matter of the source's README.md"},
	{"not_original", wraps[*model.NotOriginalError], exitError, notOriginalHint},
	{"occupied", wraps[*back.OccupiedError], exitError,
		"choose another folder with -o, or add --force to write there anyway"},
	{"own_input", wraps[*back.OwnInputError], exitError, "choose a folder outside it with -o"},
	{"folder", wraps[*disk.Error], exitError, ""},
	{"source_changed", wraps[*model.ChangedError], exitError,
		"run the same command again once nothing writes to it; a conversion then needs --force"},
	{"source_corrupt", wraps[*model.SourceError], exitError,
		"try another network; if it fails again, the file is damaged at the source"},
	{"header", wraps[*safetensors.HeaderError], exitError, ""},
	{"no_original", oneOf(errNoOriginal, back.ErrNoManifest, back.ErrNoSum), exitError,
		"name the original with --against org/name"},
	{"left_out", wraps[*back.LeftOutError], exitError,
		"use verify --level full, which compares everything that was kept"},
	{"parts_missing", wraps[convert.PartsError], exitError,
		"make those parts with --shard, then run --finish again"},
	{"not_found", oneOf(hub.ErrNotFound, hub.ErrRevisionNotFound, hub.ErrEntryNotFound), exitError,
		""},
	{"offline", oneOf(hub.ErrOffline), exitError, ""},
	{"hub_conflict", oneOf(hub.ErrConflict), exitError, ""},
	{"quota", oneOf(hub.ErrQuota), exitError, ""},
	{"hub_limit", oneOf(hub.ErrTooMany), exitError, ""},
	{"card", oneOf(hub.ErrCard), exitError, ""},
	{"disabled", oneOf(hub.ErrDisabled), exitError, ""},
	{"rate_limited", oneOf(hub.ErrRateLimited), exitError, ""},
	{"file", wraps[*fs.PathError], exitError,
		"check the path and its permissions"},
	{"unexpected", oneOf(errUnexpected), exitError,
		"remove expect: not_convertible from its entry"},
	{"not_current", oneOf(errNotCurrent), exitError, ""},
	{"gpu", oneOf(verify.ErrNoGPU, verify.ErrGPULost), exitError, ""},
	{"hub", wraps[*hub.Error], exitError, ""},
	{"error", func(error) bool { return true }, exitError, ""},
}

// isOfPair reports whether an error says that a DF11 model isn't what its original makes.
func isOfPair(err error) bool { return model.SubjectOf(err) == model.OfPair }

// refuses reports whether err wraps a T that ends a conversion, not a verification.
func refuses[T error](err error) bool { return wraps[T](err) && !wraps[differs](err) }

// kindOf returns the kind of an error.
func kindOf(err error) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.is(err) })]
}

// hint returns what you can do about an error, or "". The error's own hint counts before its
// kind's.
func hint(err error) string {
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return h.Hint()
	}
	if r, ok := errors.AsType[*plan.RefusedError](err); ok && r.Hint != "" {
		return r.Hint
	}
	if h := hub.Hint(err); h != "" {
		return h
	}
	if d, ok := errors.AsType[*budget.DiskError](err); ok && d.Folder != "" {
		return "free some space there, or name a folder on another disk with -o or --work-dir"
	}
	if f, ok := errors.AsType[*disk.Error](err); ok && !disk.IsNoSpace(err) {
		return "wait if another run uses it, or choose a folder of your own with " +
			choose(f.Kind == disk.Output, "-o", "--work-dir")
	}
	return kindOf(err).hint
}

// next returns the step that a front end can offer after an error.
func next(err error) string {
	e, isHub := errors.AsType[*hub.Error](err)
	r, _ := errors.AsType[*plan.RefusedError](err)
	switch {
	case r != nil:
		return r.Next
	case !isHub:
	case errors.Is(e, hub.ErrUnauthorized), e.TokenSource == "" &&
		oneOf(hub.ErrGated, hub.ErrNotFound, hub.ErrForbidden)(e):
		return "sign_in"
	case errors.Is(e, hub.ErrGated):
		return "accept_terms"
	case e.GaveUp() || e.Temporary():
		return "retry"
	}
	return ""
}
