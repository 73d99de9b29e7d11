// Package usage has the errors about what the user asked for. It reads no command line.
package usage

import "fmt"

// An Error is a wrong request: a flag or an option, or several that exclude each other.
type Error struct{ error }

// Unwrap returns what is wrong.
func (e Error) Unwrap() error { return e.error }

// Errorf returns an Error.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }

// Of makes an Error of err.
func Of(err error) error { return Error{err} }
