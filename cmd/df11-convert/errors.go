package main

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/usage"
	"github.com/df11-convert/df11-convert/pipeline"
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

func usagef(format string, args ...any) error { return usage.Errorf(format, args...) }

// kind is a kind of error: its name in JSON and in docs/troubleshooting.md, and its exit code.
type kind struct {
	name string
	code int
}

// ownKinds lists the kinds of errors that only the command line has, with their hints. They count
// before those of package pipeline.
var ownKinds = []struct {
	kind
	err  error
	hint hint.Hint
}{
	{kind{"interrupted", exitInterrupted}, errInterrupted, hint.Hint{}},
	{kind{"output", exitError}, errOutput, hint.Hint{}},
	{kind{"files_differ", exitFiles}, errFilesDiffer, hint.Hint{}},
	{kind{"conflict", exitError}, errForeign, hint.ListConflict},
	{kind{"unexpected", exitError}, errUnexpected, hint.Unexpected},
	{kind{"not_current", exitError}, errNotCurrent, hint.Hint{}},
}

// exits has the exit codes of the kinds of package pipeline; that of all others is exitError.
var exits = map[pipeline.Kind]int{
	pipeline.ErrInterrupted:    exitInterrupted,
	pipeline.ErrUsage:          exitUsage,
	pipeline.ErrStructure:      exitWrong,
	pipeline.ErrInvalid:        exitWrong,
	pipeline.ErrOtherOriginal:  exitWrong,
	pipeline.ErrMismatch:       exitWrong,
	pipeline.ErrUnauthorized:   exitAuth,
	pipeline.ErrGated:          exitAuth,
	pipeline.ErrForbidden:      exitAuth,
	pipeline.ErrNotConvertible: exitRefused,
	pipeline.ErrNotExactF32:    exitRefused,
	pipeline.ErrAliasesDiffer:  exitRefused,
}

// kindOf returns the kind of an error.
func kindOf(err error) kind {
	for _, k := range ownKinds {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	name := pipeline.ErrorOf(err).Kind
	code, known := exits[name]
	return kind{string(name), choose(known, code, exitError)}
}

// message returns the text of an error. What the system says about a path becomes plain words, and
// a path that the text before has named isn't repeated.
func message(err error) string {
	text := hub.Brief(err)
	e, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return text
	}
	reads := slices.Contains([]string{"open", "openat", "read", "stat", "statat", "lstat"}, e.Op)
	plain := ""
	switch {
	case errors.Is(e, fs.ErrNotExist) && reads:
		plain = "no such file or folder"
	case errors.Is(e, fs.ErrNotExist):
		plain = "the folder for it doesn't exist"
	case errors.Is(e, syscall.EISDIR):
		plain = "it's a folder, not a file"
	case errors.Is(e, syscall.ENOTDIR) && e.Op == "mkdir":
		plain = "it's a file, not a folder"
	case errors.Is(e, syscall.ENOTDIR):
		plain = "the path leads through a file"
	default:
		return text
	}
	before, after, found := strings.Cut(text, e.Error())
	if !found {
		return text
	}
	if !strings.HasSuffix(before, e.Path+": ") {
		plain = e.Path + ": " + plain
	}
	return before + plain + after
}

// A listedError is an error about a list's model.
type listedError struct{ error }

func (e listedError) Unwrap() error { return e.error }

// inList returns an error about a list's model, with a hint that can be followed there.
func inList(err error) error {
	if err == nil {
		return nil
	}
	return listedError{err}
}

// A commandError is an error that ends a command; nil if none has begun. Its hint names only flags
// of that command.
type commandError struct {
	error
	command *cobra.Command
}

func (e commandError) Unwrap() error { return e.error }

// hintOf returns what you can do about an error, or none. Package pipeline knows it, except for the
// kinds of the command line's own.
func hintOf(err error) hint.Hint {
	if e, ok := errors.AsType[listedError](err); ok {
		return hintOf(e.error).ForList()
	}
	if e, ok := errors.AsType[commandError](err); ok && e.command != nil {
		return hintOf(e.error).For(func(text string) bool { return lacks(e.command, text) == "" })
	}
	for _, k := range ownKinds {
		if errors.Is(err, k.err) {
			return k.hint
		}
	}
	return hint.Of(pipeline.ErrorOf(err))
}
