package model

import (
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// SourceError says that the bytes of a source file are not the published ones.
type SourceError struct{ File, Want, Got string }

func (e *SourceError) Error() string {
	return fmt.Sprintf("source file %s: sha256 is %s, published is %s", e.File, e.Got, e.Want)
}

// HeaderError says that a source file does not begin with the header that the plan was made from,
// so that the plan may be wrong although the file's sha256 is right.
type HeaderError struct{ File string }

func (e *HeaderError) Error() string {
	return fmt.Sprintf(
		"source file %s: its header is not the one that the plan was made from; it was read wrong or has changed", e.File)
}

// ReadError says which source file could not be read. Err names it.
type ReadError struct {
	File string
	Err  error
}

func (e *ReadError) Error() string { return e.Err.Error() }

func (e *ReadError) Unwrap() error { return e.Err }

// NewReadError is the error of a read of a file that came to an offset.
func NewReadError(f plan.File, err error, at int64) *ReadError {
	if err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // an error of the source that wraps one says more
		err = fmt.Errorf("source file %s ends after %d of %d bytes: %w", f.Path, at, f.Size,
			io.ErrUnexpectedEOF)
	}
	return &ReadError{f.Path, err}
}

// ChangedError says that somebody wrote to a source file while it was read, so that two reads may
// differ.
type ChangedError struct{ File string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("source file %s was written to while it was converted", e.File)
}

// InvalidError says that something about a DF11 model is not as it must be.
type InvalidError struct {
	File string // "" for the model as a whole
	err  error
}

func (e *InvalidError) Unwrap() error { return e.err }

func (e *InvalidError) Error() string {
	if e.File == "" {
		return e.err.Error()
	}
	return e.File + ": " + e.err.Error()
}

// Invalidf makes an InvalidError about a file, or about the model as a whole if file is "".
func Invalidf(file, format string, args ...any) error {
	return &InvalidError{file, fmt.Errorf(format, args...)}
}
