package catalog

import "fmt"

// A RefusedError says that a source can't be converted as asked. The command line exits with 5.
type RefusedError struct {
	Detail string `json:"why"`  // one sentence: what is wrong
	Hint   string `json:"hint"` // what to do or to use instead; may be empty
	Next   string `json:"-"`    // the hint for programs (docs/json.md); may be empty
}

// Error returns the detail. The caller prints the hint on its own line.
func (e *RefusedError) Error() string { return e.Detail }

// Refuse returns a RefusedError. It formats the detail, and leaves the hint as it is.
func Refuse(hint, format string, args ...any) error {
	return &RefusedError{Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// UnreadHint goes with small files that can't be read.
const UnreadHint = "fetch it again, or correct it in a copy of the source"
