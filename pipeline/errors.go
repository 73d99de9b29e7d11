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
	"github.com/df11-convert/df11-convert/internal/hint"
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

// Error returns the text of the cause, or else the kind.
func (e *Error) Error() string {
	if e.err == nil {
		return string(e.Kind)
	}
	return e.err.Error()
}

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
	ErrNewerTarget    Kind = "newer_target"    // a newer version made the target or the DF11 model
	ErrSourceIsTarget Kind = "source_is_target"
	ErrTargetTaken    Kind = "target_taken" // another run was faster
	ErrTargetLost     Kind = "target_lost"  // someone changed what was just published, or the folder meanwhile
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
	ErrNoOriginal     Kind = "no_original"    // the DF11 model doesn't name its original, or it isn't here
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
	hint hint.Hint
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

// none is the hint of errors that have their own, or that no step helps with.
var none hint.Hint

// kinds lists all kinds of errors. The first match counts; the last one matches any error.
var kinds = []kind{
	{ErrNotConvertible, wraps[*unlike], none},
	{ErrUsage, usage.Is, none},
	{ErrUsage, oneOf(hub.ErrArgument), none},
	{ErrUsage, oneOf(model.ErrRemoteWeights), hint.ArrangedHere},
	{ErrDiskFull, disk.IsNoSpace, hint.DiskFull},
	{ErrDiskBudget, wraps[*budget.DiskError], hint.DiskBudget},
	{ErrMemoryBudget, isMemory, hint.MemoryBudget},
	{ErrStructure, wraps[*verify.StructureError], none},
	{ErrOtherOriginal, wraps[otherOriginal], none},
	{ErrNotExactF32, refuses[*spans.InexactError],
		hint.InexactF32},
	{ErrAliasesDiffer, refuses[*forward.AliasError], hint.TiedDiffer},
	{ErrMismatch, isOfPair, none},
	{ErrNotDF11, oneOf(model.ErrNoDF11Config), none},
	{ErrInvalid, wraps[*model.InvalidError], none},
	{ErrUnauthorized, oneOf(hub.ErrUnauthorized, hub.ErrTrustedPublisher), none},
	{ErrGated, oneOf(hub.ErrGated), none},
	{ErrForbidden, oneOf(hub.ErrForbidden), none},
	{ErrNotConvertible, wraps[*plan.RefusedError], none},
	{ErrConflict, func(err error) bool {
		return wraps[*publish.ConflictError](err)
	}, hint.Conflict},
	{ErrNewerTarget, wraps[*publish.NewerError],
		hint.Newer},
	{ErrNewerTarget, wraps[*metadata.NewerError], none},
	{ErrSourceIsTarget, wraps[*publish.SourceTargetError], none},
	{ErrTargetTaken, wraps[*publish.TakenError],
		hint.Taken},
	{ErrTargetTaken, oneOf(publish.ErrBranchGone), none},
	{ErrTargetLost, wraps[*publish.LostError], none},
	{ErrTargetLost, wraps[*publish.LostFileError], none},
	{ErrTargetWrong, wraps[*hub.WitnessError], none},
	{ErrVisibility, wraps[*publish.VisibilityError], none},
	{ErrCard, wraps[*convert.CardError],
		hint.Card},
	{ErrNotOriginal, wraps[*model.NotOriginalError], hint.NotOriginal},
	{ErrOccupied, wraps[*back.OccupiedError],
		hint.Occupied},
	{ErrOwnInput, wraps[*back.OwnInputError], hint.OwnInput},
	{ErrFolder, wraps[*disk.Error], none},
	{ErrSourceChanged, wraps[*model.ChangedError],
		hint.SourceChanged},
	{ErrSourceCorrupt, wraps[*model.SourceError],
		hint.SourceCorrupt},
	{ErrHeader, wraps[*safetensors.HeaderError], none},
	{ErrNoOriginal, oneOf(errNoOriginal, errNotHere, back.ErrNoManifest, back.ErrNoSum), hint.NoOriginal},
	{ErrLeftOut, wraps[*back.LeftOutError],
		hint.LeftOut},
	{ErrPartsMissing, wraps[convert.PartsError],
		hint.PartsMissing},
	{ErrNotFound, oneOf(hub.ErrNotFound, hub.ErrRevisionNotFound, hub.ErrEntryNotFound), none},
	{ErrOffline, oneOf(hub.ErrOffline), none},
	{ErrHubConflict, oneOf(hub.ErrConflict), none},
	{ErrQuota, oneOf(hub.ErrQuota), none},
	{ErrHubLimit, oneOf(hub.ErrTooMany), none},
	{ErrCard, oneOf(hub.ErrCard), none},
	{ErrDisabled, oneOf(hub.ErrDisabled), none},
	{ErrRateLimited, oneOf(hub.ErrRateLimited), none},
	{ErrFile, wraps[*fs.PathError], none},
	{ErrFile, wraps[*disk.TooLargeError], hint.PathTooLarge},
	{ErrGPU, oneOf(verify.ErrNoGPU, verify.ErrGPULost), none},
	{ErrHub, wraps[*hub.Error], none},
	{ErrOther, func(error) bool { return true }, none},
}

// fileHints say what to do about a file that the system refuses. The first match counts.
var fileHints = []struct {
	is   func(error) bool
	hint hint.Hint
}{
	{oneOf(syscall.EMFILE, syscall.ENFILE), hint.OpenFiles},
	{oneOf(syscall.EFBIG), hint.FileSize},
	{oneOf(syscall.EISDIR, disk.ErrNotRegular), hint.NotFile},
	{oneOf(fs.ErrPermission, syscall.EROFS), hint.PathForbidden},
	{oneOf(fs.ErrNotExist, syscall.ENOTDIR, syscall.ENAMETOOLONG), hint.Path},
}

// fileHint returns what to do about a file, or a connection, that the system refuses; none if err
// is about something else.
func fileHint(err error) hint.Hint {
	if fileHints[0].is(err) {
		return fileHints[0].hint
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		for _, f := range fileHints {
			if f.is(file.Err) {
				return f.hint
			}
		}
	}
	return none
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

// isMemory reports whether an error says that the memory budget is too small.
func isMemory(err error) bool {
	return wraps[*budget.MemoryError](err) || wraps[*model.MemoryError](err) ||
		oneOf(safetensors.ErrMemory, metadata.ErrMemory)(err)
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
	e := &Error{Kind: k.kind, Next: next(err), err: err}
	e.advise(hintOf(err, k.hint))
	if t, ok := errors.AsType[*forward.TensorError](err); ok {
		e.Tensor = t.Tensor
	}
	return e
}

// advise sets the hint, also for [hint.Of], which knows what to say in a list instead.
func (e *Error) advise(h hint.Hint) { e.Hint, e.err = h.String(), hint.On(e.err, h) }

// described is ErrorOf as an error, which is nil for nil.
func described(err error) error {
	if err == nil {
		return nil
	}
	return ErrorOf(err)
}

// hintOf returns what you can do about an error. What the error knows itself counts before usual,
// the hint of its kind.
func hintOf(err error, usual hint.Hint) hint.Hint {
	if h := hint.Of(err); h != none {
		return h
	}
	if r, ok := errors.AsType[*plan.RefusedError](err); ok && r.Hint != none {
		return r.Hint
	}
	if d, ok := errors.AsType[*budget.DiskError](err); ok && d.Folder != "" {
		return hint.DiskFolder
	}
	if f, ok := errors.AsType[*disk.Error](err); ok && !disk.IsNoSpace(err) {
		return folderHint(f)
	}
	if usual == none {
		return fileHint(err)
	}
	return usual
}

// folderHint returns what to do about a folder that can't be used.
func folderHint(f *disk.Error) hint.Hint {
	unsafe, isUnsafe := errors.AsType[*disk.UnsafeError](f)
	h := hint.Folder
	switch {
	case errors.Is(f, syscall.EMFILE), errors.Is(f, syscall.ENFILE), errors.Is(f, syscall.EFBIG):
		return fileHint(f)
	case errors.Is(f, disk.ErrLocked):
		h = hint.FolderLocked
	case isUnsafe && unsafe.Chmod == "+t":
		h = hint.FolderAbove
	case isUnsafe && unsafe.Chmod != "":
		h = hint.FolderShared.With("mode", unsafe.Chmod)
	case isUnsafe:
		h = hint.FolderUnsafe
	case errors.Is(f, syscall.EROFS):
		h = hint.FolderReadOnly
	case errors.Is(f, fs.ErrPermission):
		h = hint.FolderForbidden
	case errors.Is(f, syscall.ENOTDIR):
		h = hint.FolderIsFile
	}
	flag := "--work-dir"
	if f.Kind == disk.Output {
		flag = "-o"
	}
	if isUnsafe {
		h = h.With("folder", unsafe.Path)
	}
	return h.With("flag", flag)
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
