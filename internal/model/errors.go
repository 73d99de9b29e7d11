package model

import "fmt"

// SourceError says that the bytes of a source file are not the published ones.
type SourceError struct{ File, Want, Got string }

func (e *SourceError) Error() string {
	return fmt.Sprintf("source file %s: sha256 is %s, published is %s", e.File, e.Got, e.Want)
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
