package catalog

import "fmt"

// RefusedError says that a source cannot be converted as asked; the command line exits with 5.
type RefusedError struct {
	Detail string // one sentence: what is wrong
	Hint   string // what to do or to use instead; may be empty
}

// Error returns the detail; the hint is left to the caller, who prints it on its own line.
func (e *RefusedError) Error() string { return e.Detail }

// Refuse returns a RefusedError; the detail is formatted, the hint is taken as it is.
func Refuse(hint, format string, args ...any) error {
	return &RefusedError{Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// UnreadHint goes with small files that are not what they should be.
const UnreadHint = "fetch it again, or correct it in a copy of the source"
