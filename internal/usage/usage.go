// Package usage has the errors about what the user asked for. It reads no command line.
package usage

import (
	"errors"
	"fmt"
)

// A mistake is a wrong request: a flag or an option, or several that exclude each other.
type mistake struct{ error }

// Unwrap returns what is wrong.
func (m mistake) Unwrap() error { return m.error }

// Errorf returns an error about a wrong request.
func Errorf(format string, args ...any) error { return mistake{fmt.Errorf(format, args...)} }

// Of makes an error about a wrong request of err.
func Of(err error) error { return mistake{err} }

// Is reports whether an error is about a wrong request.
func Is(err error) bool {
	_, is := errors.AsType[mistake](err)
	return is
}
