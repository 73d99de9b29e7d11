package model

import (
	"errors"
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A SourceError means that the bytes of a source file aren't the published ones, or that its header
// isn't the one the plan was made from.
type SourceError struct{ File, Detail string }

func (e *SourceError) Error() string { return "source file " + e.File + ": " + e.Detail }

// WrongFile returns the file.
func (e *SourceError) WrongFile() string { return e.File }

// OtherHash returns the SourceError of a file whose hash isn't the published one.
func OtherHash(file, got, published string) error {
	return &SourceError{file, fmt.Sprintf("sha256 is %s, published is %s", got, published)}
}

// A ReadError means that a source file couldn't be read. Err names the file.
type ReadError struct {
	File string
	Err  error
}

func (e *ReadError) Error() string { return e.Err.Error() }

func (e *ReadError) Unwrap() error { return e.Err }

// WrongFile returns the file if it isn't the published one, or "": the commit is pinned, so the
// storage is wrong then.
func (e *ReadError) WrongFile() string {
	if errors.Is(e.Err, hub.ErrChanged) || errors.Is(e.Err, hub.ErrCorrupt) {
		return e.File
	}
	return ""
}

// WrongFile returns the source file whose bytes an error found not to be the published ones, or "".
func WrongFile(err error) string {
	if e, ok := errors.AsType[interface {
		error
		WrongFile() string
	}](err); ok {
		return e.WrongFile()
	}
	return ""
}

// NewReadError returns the error of a read of f that stopped at an offset.
func NewReadError(f plan.File, err error, at int64) *ReadError {
	if err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // a wrapped one says more
		err = fmt.Errorf("source file %s ends after %d of %d bytes: %w", f.Path, at, f.Size,
			io.ErrUnexpectedEOF)
	}
	return &ReadError{f.Path, err}
}

// A ChangedError means that someone wrote to a source file while it was read, so two reads may
// differ. Read means that two did, although the file's size and time are as they were.
type ChangedError struct {
	File string
	Read bool
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("source file %s was written to while it was converted", e.File)
}

// What a fault is about.
const (
	OfModel = "model" // a DF11 model alone
	OfPair  = "pair"  // a DF11 model and its original
)

// A Fault is an error that says that something is wrong, as opposed to unreadable. Its Subject is
// OfModel or OfPair.
type Fault interface {
	error
	Subject() string
}

// SubjectOf returns the subject of a fault that err wraps, or "" if it wraps none. If it wraps
// several, the outermost counts.
func SubjectOf(err error) string {
	if f, ok := errors.AsType[Fault](err); ok {
		return f.Subject()
	}
	return ""
}

// An InvalidError means that something about a DF11 model is wrong.
type InvalidError struct{ error }

func (e *InvalidError) Unwrap() error { return e.error }

// Subject returns OfModel.
func (e *InvalidError) Subject() string { return OfModel }

// Invalidf returns an InvalidError about a file, or about the whole model if file is "".
func Invalidf(file, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if file != "" {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return &InvalidError{err}
}
