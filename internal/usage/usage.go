// Package usage has the errors about what the user asked for, and hints on what to do instead. It
// reads no command line.
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

// hinted is an error with a hint of its own.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

func (h hinted) Hint() string { return h.hint }

// Hinted adds to an error what the user can do about it.
func Hinted(err error, hint string) error { return hinted{err, hint} }
