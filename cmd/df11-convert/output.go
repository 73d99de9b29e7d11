package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/term"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
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

// canWrite makes sure, before the work whose outcome it is for, that the file which a flag names can be written.
func canWrite(flag, file string) error {
	if file == "" {
		return nil
	}
	f, err := atomicfile.Create(file)
	if err == nil {
		f.Cleanup()
		if st, missing := os.Stat(file); missing == nil && !st.Mode().IsRegular() {
			err = &fs.PathError{Op: "create", Path: file, Err: errors.New("something else than a file is there")}
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// outputError says that a result could not be printed. It hides its cause: no hint about full disks is about this one.
type outputError struct{ cause error }

func (e outputError) Error() string { return "write to standard output: " + e.cause.Error() }
