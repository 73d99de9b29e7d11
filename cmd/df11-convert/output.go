package main

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/term"
)

// results is stdout, to which only printable text goes. It keeps the first error: whoever prints need not look at it, and no run whose result got lost ends well.
type results struct {
	to  io.Writer
	err error
}

func (r *results) Write(b []byte) (int, error) {
	n := len(b)
	_, err := io.WriteString(r.to, printable(string(b)))
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // without the name
	}
	if err != nil {
		err = outputError{err}
		r.err, n = cmp.Or(r.err, err), 0
	}
	return n, err
}

// width is that of the terminal to which results go, 0 if they go elsewhere.
func (r *results) width() int {
	f, ok := r.to.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _ := size(f)
	return width
}

// outputError says that a result could not be printed. It hides its cause: no hint about full disks is about this one.
type outputError struct{ cause error }

func (e outputError) Error() string { return "write to standard output: " + e.cause.Error() }
