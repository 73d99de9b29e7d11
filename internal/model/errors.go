package model

import (
	"errors"
	"fmt"
)

// SourceError says that a source file is not what it should be: its sha256, or the part of it that an earlier run used.
type SourceError struct {
	File      string
	Want, Got string
	// End is 0 for the whole file, else the length of the prefix that differs from what an earlier run read.
	End int64
}

func (e *SourceError) Error() string {
	if e.End > 0 {
		return fmt.Sprintf("source file %s: its first %d bytes differ from those an earlier run read", e.File, e.End)
	}
	return fmt.Sprintf("source file %s: sha256 is %s, published is %s", e.File, e.Got, e.Want)
}

// ChangedError says that somebody has written to a source file while it was read, so that two reads may not agree.
type ChangedError struct{ File string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("source file %s was written to while it was converted", e.File)
}

// InvalidError says that something about a DF11 model is not as it must be.
type InvalidError struct {
	File   string // "" for the model as a whole
	Detail string
	cause  error // that Detail ends with, if somebody may ask for it
}

func (e *InvalidError) Unwrap() error { return e.cause }

func (e *InvalidError) Error() string {
	if e.File == "" {
		return e.Detail
	}
	return e.File + ": " + e.Detail
}

// Invalidf makes an InvalidError about a file, or about the model as a whole if file is "".
func Invalidf(file, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &InvalidError{File: file, Detail: err.Error(), cause: errors.Unwrap(err)}
}
