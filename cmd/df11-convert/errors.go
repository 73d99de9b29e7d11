package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
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

// wraps reports whether err wraps a T.
func wraps[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// kind is a kind of error: its name in JSON and in docs/troubleshooting.md, its exit code, and what
// the user can do, unless the error itself knows better.
type kind struct {
	name string
	is   func(error) bool
	code int
	hint string
}

// oneOf reports whether an error wraps one of a package's sentinels.
func oneOf(sentinels ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(sentinels, func(s error) bool { return errors.Is(err, s) })
	}
}

// kinds are all kinds of errors. The first that fits an error counts; the last fits any.
var kinds = []kind{
	{"interrupted", oneOf(errInterrupted), exitInterrupted, ""},
	{"usage", wraps[usageError], exitUsage, ""},
	{"output", wraps[outputError], exitError, ""},
	{"disk_full", disk.IsNoSpace, exitError, "free some space, or use another disk"},
	{"disk_budget", wraps[*budget.DiskError], exitError, "raise --disk, or free some space"},
	{"memory_budget", wraps[*budget.MemoryError], exitError, "raise --memory, or leave it out"},
	{"mismatch", isMismatch, exitWrong, ""},
	{"files_differ", wraps[besideError], exitWrong, ""},
	{"structure", wraps[*verify.StructureError], exitWrong, ""},
	{"invalid", wraps[*model.InvalidError], exitWrong, ""},
	{"unauthorized", oneOf(hub.ErrUnauthorized, hub.ErrTrustedPublisher), exitAuth, ""},
	{"gated", oneOf(hub.ErrGated), exitAuth, ""},
	{"forbidden", oneOf(hub.ErrForbidden), exitAuth, ""},
	{"f32_not_exact", wraps[*spans.InexactError], exitRefused,
		"convert the model to BF16 yourself first, if rounding is what you want"},
	{"aliases_differ", wraps[*forward.AliasError], exitRefused, ""},
	{"not_convertible", wraps[*plan.RefusedError], exitRefused, ""},
	{"conflict", wraps[*target.ConflictError], exitError, ""},
	{"source_is_target", wraps[*target.SourceTargetError], exitError,
		"choose another target with -o or --repo-id"},
	{"target_taken", wraps[*target.TakenError], exitError,
		"two runs have one target: give this one another with --repo-id or -o, or let the other one end and look at what it has made"},
	{"target_lost", wraps[*target.LostError], exitError,
		"another program may have written there too: let one at a time publish to a repo, and run the same command again"},
	{"visibility", wraps[*target.VisibilityError], exitError,
		"make it private in its settings, or choose another target with --repo-id"},
	{"occupied", wraps[*back.OccupiedError], exitError, ""},
	{"own_input", wraps[*back.OwnInputError], exitError, "choose a folder outside of it with -o"},
	{"folder", wraps[*disk.Error], exitError, ""},
	{"source_changed", wraps[*model.ChangedError], exitError,
		"run the same command again when nothing writes to it any more"},
	{"source_corrupt", wraps[*model.SourceError], exitError,
		"the bytes that arrived are not the published ones: the file is damaged at the source, or on its way"},
	{"header", wraps[*safetensors.HeaderError], exitError,
		"the file is incomplete or damaged: fetch it once more"},
	{"no_original", oneOf(errNoOriginal, back.ErrNoManifest, back.ErrNoSum), exitError,
		"name the original with --against org/name"},
	{"left_out", wraps[*back.LeftOutError], exitError,
		"verify --level full compares all that was kept with the original"},
	{"parts_missing", wraps[*pipeline.PartsError], exitError,
		"make those parts with --shard, and then --finish again"},
	{"not_found", oneOf(hub.ErrNotFound, hub.ErrRevisionNotFound, hub.ErrEntryNotFound), exitError,
		""},
	{"offline", oneOf(hub.ErrOffline), exitError, ""},
	{"hub_conflict", oneOf(hub.ErrConflict), exitError, ""},
	{"quota", oneOf(hub.ErrQuota), exitError, ""},
	{"rate_limited", oneOf(hub.ErrRateLimited), exitError, ""},
	{"file", wraps[*fs.PathError], exitError,
		"check the path, and whether it may be read or written"},
	{"not_current", oneOf(errNotCurrent), exitError, ""},
	{"gpu", oneOf(verify.ErrNoGPU, verify.ErrGPULost), exitError, ""},
	{"hub", wraps[*hub.Error], exitError, ""},
	{"error", func(error) bool { return true }, exitError, ""},
}

// isMismatch reports whether weights of a DF11 model are not the original's.
func isMismatch(err error) bool {
	return wraps[*verify.MismatchError](err) || wraps[*forward.TensorError](err) ||
		wraps[*back.ComponentError](err)
}

// kindOf is the kind of an error.
func kindOf(err error) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.is(err) })]
}

// hint is what the user can do about an error, in one line, "" if nothing is known: what was said
// with the error counts before what is said of its kind.
func hint(err error) string {
	if h, ok := errors.AsType[hinted](err); ok {
		return h.hint
	}
	if r, ok := errors.AsType[*plan.RefusedError](err); ok && r.Hint != "" {
		return r.Hint
	}
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return h.Hint()
	}
	if h := hub.Hint(err); h != "" {
		return h
	}
	if c, ok := errors.AsType[*target.ConflictError](err); ok {
		return "choose another target with -o or --repo-id, or --force: " +
			choose(len(c.Overwritten) > 0,
				"files with these names are overwritten, all others stay",
				"these files stay, and the loader reads them too")
	}
	if d, ok := errors.AsType[*budget.DiskError](err); ok && d.Folder != "" {
		return "free some space, or choose another disk with " + choose(d.Result > 0, "-o",
			"--work-dir")
	}
	if v, ok := errors.AsType[*target.VisibilityError](err); ok && v.Source != "" {
		return "make it private in its settings, choose another target with --repo-id, or allow it with --public if the license does"
	}
	if f, ok := errors.AsType[*disk.Error](err); ok && !disk.IsNoSpace(err) {
		return folderHint(f)
	}
	if o, ok := errors.AsType[*back.OccupiedError](err); ok {
		return "choose another folder with -o, or --force " + choose(len(o.Replaced) > 0,
			"to overwrite", "to keep them; a loader may take them for the model's")
	}
	return kindOf(err).hint
}

// folderHint says what to do about a folder that can't be used.
func folderHint(f *disk.Error) string {
	flag := choose(f.Kind == disk.Output, "-o", "--work-dir")
	if errors.Is(f, disk.ErrLocked) {
		return "wait until the other run ends, or choose another folder with " + flag
	}
	if wraps[*disk.UnsafeError](f) {
		return "look at what is there, or choose a folder of your own with " + flag
	}
	return "choose a folder that can be written with " + flag
}
