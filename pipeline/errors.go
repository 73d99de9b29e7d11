package pipeline

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/usage"
	"github.com/df11-convert/df11-convert/verify"
)

// An Error is a failure of a call. It wraps what caused it, such as a *hub.Error or a
// *verify.MismatchError.
type Error struct {
	// Kind is the kind of failure. errors.Is(err, ErrConflict) reports whether it's that one.
	Kind Kind
	// Hint says what the user can do, in the words of the command's flags; "" if nothing is known.
	Hint string
	// Next is the step that a program can offer: "sign_in", "accept_terms", "retry", or "".
	Next string
	// Tensor is the tensor that differs, if that's known and no verify.MismatchError says it.
	Tensor string

	err error
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Is reports whether target is the error's kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

// A Kind is a kind of failure, by its name in docs/troubleshooting.md. Test for it with errors.Is.
type Kind string

func (k Kind) Error() string { return string(k) }

// The kinds of failures. The names never change, but kinds may be added.
const (
	ErrInterrupted    Kind = "interrupted" // the context ended
	ErrUsage          Kind = "usage"       // options that contradict each other or name nothing
	ErrDiskFull       Kind = "disk_full"
	ErrDiskBudget     Kind = "disk_budget"
	ErrMemoryBudget   Kind = "memory_budget"
	ErrStructure      Kind = "structure"       // the DF11 model is damaged
	ErrInvalid        Kind = "invalid"         // the DF11 model is damaged or incomplete
	ErrOtherOriginal  Kind = "other_original"  // the DF11 model is made from another original
	ErrMismatch       Kind = "mismatch"        // the DF11 model isn't what its original makes
	ErrNotDF11        Kind = "not_df11"        // the model is no DF11 model
	ErrNotConvertible Kind = "not_convertible" // no conversion of the source is possible
	ErrNotExactF32    Kind = "f32_not_exact"   // BF16 can't hold an F32 weight
	ErrAliasesDiffer  Kind = "aliases_differ"  // tied tensors differ in the source
	ErrUnauthorized   Kind = "unauthorized"    // the Hub refuses the token
	ErrGated          Kind = "gated"           // accept the repo's terms
	ErrForbidden      Kind = "forbidden"       // the token lacks a right
	ErrConflict       Kind = "conflict"        // files of others are in the way
	ErrNewerTarget    Kind = "newer_target"    // a newer version has made the target
	ErrSourceIsTarget Kind = "source_is_target"
	ErrTargetTaken    Kind = "target_taken" // another run was faster
	ErrTargetLost     Kind = "target_lost"  // someone changed what was just published
	ErrTargetWrong    Kind = "target_wrong" // another client sees something else than was published
	ErrVisibility     Kind = "visibility"   // the target is more open than it may be
	ErrCard           Kind = "card"         // a model card that can't be read, or that the Hub refuses
	ErrNotOriginal    Kind = "not_original" // the local source isn't a copy of Options.Original
	ErrOccupied       Kind = "occupied"     // the folder for decoded files holds others
	ErrOwnInput       Kind = "own_input"    // the folder for decoded files is the model's own
	ErrFolder         Kind = "folder"       // a folder that is in use or unsafe
	ErrSourceChanged  Kind = "source_changed"
	ErrSourceCorrupt  Kind = "source_corrupt" // its bytes aren't the published ones
	ErrHeader         Kind = "header"         // of a safetensors file
	ErrNoOriginal     Kind = "no_original"    // the DF11 model doesn't name its original
	ErrLeftOut        Kind = "left_out"       // the conversion left out what a proof needs
	ErrPartsMissing   Kind = "parts_missing"
	ErrNotFound       Kind = "not_found" // no such repo, revision, or file
	ErrOffline        Kind = "offline"
	ErrHubConflict    Kind = "hub_conflict" // the branch has moved
	ErrQuota          Kind = "quota"
	ErrHubLimit       Kind = "hub_limit" // too many or too large files
	ErrDisabled       Kind = "disabled"  // the Hub has disabled the repo
	ErrRateLimited    Kind = "rate_limited"
	ErrFile           Kind = "file"
	ErrGPU            Kind = "gpu"
	ErrHub            Kind = "hub"   // any other failure of a request
	ErrOther          Kind = "error" // anything else
)

// kind is a kind of error, and a hint for errors that have none of their own.
type kind struct {
	kind Kind
	is   func(error) bool
	hint string
}

// wraps reports whether err wraps a T.
func wraps[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// oneOf returns a function that reports whether an error wraps one of the sentinels.
func oneOf(sentinels ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(sentinels, func(s error) bool { return errors.Is(err, s) })
	}
}

// kinds lists all kinds of errors. The first match counts; the last one matches any error.
var kinds = []kind{
	{ErrUsage, wraps[usage.Error], ""},
	{ErrDiskFull, disk.IsNoSpace, "free some space, or use another disk"},
	{ErrDiskBudget, wraps[*budget.DiskError], "raise --disk, or leave it out"},
	{ErrMemoryBudget, func(err error) bool {
		return wraps[*budget.MemoryError](err) || wraps[*model.MemoryError](err) ||
			oneOf(safetensors.ErrMemory, metadata.ErrMemory)(err)
	}, "raise --memory, or leave it out"},
	{ErrStructure, wraps[*verify.StructureError], ""},
	{ErrOtherOriginal, wraps[otherOriginal], ""},
	{ErrNotExactF32, refuses[*spans.InexactError],
		"leave out --exact-f32: F32 tensors then stay as they are; or convert the model to BF16 " +
			"yourself first, if rounding is what you want"},
	{ErrAliasesDiffer, refuses[*forward.AliasError], ""},
	{ErrMismatch, isOfPair, ""},
	{ErrNotDF11, oneOf(model.ErrNoDF11Config), ""},
	{ErrInvalid, wraps[*model.InvalidError], ""},
	{ErrUnauthorized, oneOf(hub.ErrUnauthorized, hub.ErrTrustedPublisher), ""},
	{ErrGated, oneOf(hub.ErrGated), ""},
	{ErrForbidden, oneOf(hub.ErrForbidden), ""},
	{ErrNotConvertible, wraps[*plan.RefusedError], ""},
	{ErrConflict, func(err error) bool {
		return wraps[*publish.ConflictError](err)
	}, "choose another target with -o or --repo-id (a work folder with --work-dir), or add --force " +
		"to write there anyway"},
	{ErrNewerTarget, wraps[*publish.NewerError],
		"update df11-convert, or add --force to make it again as this version does"},
	{ErrSourceIsTarget, wraps[*publish.SourceTargetError], ""},
	{ErrTargetTaken, wraps[*publish.TakenError],
		"choose another target with --repo-id or -o, or wait until the other run ends"},
	{ErrTargetLost, wraps[*publish.LostError], ""},
	{ErrTargetWrong, wraps[*hub.WitnessError], ""},
	{ErrVisibility, wraps[*publish.VisibilityError],
		"make it private in its settings, choose another target with --repo-id, or allow it " +
			"with --public if the license does"},
	{ErrCard, wraps[*convert.CardError],
		"name the license with --license ID, such as mit, or fix the front matter of the " +
			"source's README.md"},
	{ErrNotOriginal, wraps[*model.NotOriginalError], notOriginalHint},
	{ErrOccupied, wraps[*back.OccupiedError],
		"choose another folder with -o, or add --force to write there anyway"},
	{ErrOwnInput, wraps[*back.OwnInputError], "choose a folder outside it with -o"},
	{ErrFolder, wraps[*disk.Error], ""},
	{ErrSourceChanged, wraps[*model.ChangedError],
		"run the same command again once nothing writes to it; a conversion then needs --force"},
	{ErrSourceCorrupt, wraps[*model.SourceError],
		"try another network; if it fails again, the file is damaged at the source"},
	{ErrHeader, wraps[*safetensors.HeaderError], ""},
	{ErrNoOriginal, oneOf(errNoOriginal, back.ErrNoManifest, back.ErrNoSum), noOriginalHint},
	{ErrLeftOut, wraps[*back.LeftOutError],
		"use verify --level full, which compares everything that was kept"},
	{ErrPartsMissing, wraps[convert.PartsError],
		"make those parts with --shard, then run --finish again"},
	{ErrNotFound, oneOf(hub.ErrNotFound, hub.ErrRevisionNotFound, hub.ErrEntryNotFound), ""},
	{ErrOffline, oneOf(hub.ErrOffline), ""},
	{ErrHubConflict, oneOf(hub.ErrConflict), ""},
	{ErrQuota, oneOf(hub.ErrQuota), ""},
	{ErrHubLimit, oneOf(hub.ErrTooMany), ""},
	{ErrCard, oneOf(hub.ErrCard), ""},
	{ErrDisabled, oneOf(hub.ErrDisabled), ""},
	{ErrRateLimited, oneOf(hub.ErrRateLimited), ""},
	{ErrFile, wraps[*fs.PathError], "check the path and its permissions"},
	{ErrGPU, oneOf(verify.ErrNoGPU, verify.ErrGPULost), ""},
	{ErrHub, wraps[*hub.Error], ""},
	{ErrOther, func(error) bool { return true }, ""},
}

// Kinds lists the kinds that an error can have.
func Kinds() []Kind {
	all := []Kind{ErrInterrupted}
	for _, k := range kinds {
		if !slices.Contains(all, k.kind) {
			all = append(all, k.kind)
		}
	}
	return all
}

// isOfPair reports whether an error says that a DF11 model isn't what its original makes.
func isOfPair(err error) bool { return model.SubjectOf(err) == model.OfPair }

// refuses reports whether err wraps a T that ends a conversion, not a verification.
func refuses[T error](err error) bool { return wraps[T](err) && !wraps[differs](err) }

// ErrorOf describes any error of this module, such as one of a hub.Client. It returns nil for nil.
func ErrorOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok || err == nil {
		return e
	}
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.is(err) })]
	e := &Error{Kind: k.kind, Hint: hint(err, k.hint), Next: next(err), err: err}
	if t, ok := errors.AsType[*forward.TensorError](err); ok {
		e.Tensor = t.Tensor
	}
	return e
}

// described is ErrorOf as an error, which is nil for nil.
func described(err error) error {
	if err == nil {
		return nil
	}
	return ErrorOf(err)
}

// hint returns what you can do about an error, or "". The error's own hint counts before usual,
// its kind's.
func hint(err error, usual string) string {
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
		return folderHint(f)
	}
	return usual
}

// folderHint returns what to do about a folder that can't be used.
func folderHint(f *disk.Error) string {
	with := "--work-dir"
	if f.Kind == disk.Output {
		with = "-o"
	}
	unsafe, isUnsafe := errors.AsType[*disk.UnsafeError](f)
	switch {
	case errors.Is(f, disk.ErrLocked):
		return "wait until the other run ends, or choose another folder with " + with
	case isUnsafe && unsafe.Chmod == "+t":
		return "choose a folder of your own with " + with + ", such as one below your home; or let " +
			"users rename only their own files there: chmod +t " + human.ShellWord(unsafe.Path)
	case isUnsafe && unsafe.Chmod != "":
		return "choose a folder of your own with " + with + "; or let only yourself write there: " +
			"chmod " + unsafe.Chmod + " " + human.ShellWord(unsafe.Path)
	case isUnsafe:
		return "choose a folder of your own with " + with
	case errors.Is(f, syscall.EROFS):
		return "choose a folder on a disk that isn't read-only with " + with
	case errors.Is(f, fs.ErrPermission):
		return "choose a folder that you may write to with " + with
	case errors.Is(f, syscall.ENOTDIR):
		return "choose a path with " + with + " that doesn't lead through a file"
	}
	return "choose another folder with " + with
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

// noOriginalHint says how to name an original that a DF11 model doesn't name.
const noOriginalHint = "name the original with --against org/name, or --against ./folder if it " +
	"was made from a folder"

// notOriginalHint says what to do about a [model.NotOriginalError].
const notOriginalHint = "leave --original out; if you trained from that model, name it as base_model " +
	"in the source's README.md: the card then says so"
