package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/terminal"
)

// results is stdout, to which only printable text goes. It keeps the first error: whoever prints
// need not look at it, and no run whose result got lost ends well.
type results struct {
	to  *os.File
	err error
}

func (r *results) Write(b []byte) (int, error) {
	n := len(b)
	_, err := io.WriteString(r.to, terminal.Printable(string(b)))
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
	if !term.IsTerminal(int(r.to.Fd())) {
		return 0
	}
	width, _ := size(r.to)
	return width
}

// canWrite makes sure, before the work whose outcome it is for, that the file which a flag names
// can be written, and that it replaces no file of the input, if that is local, no weights, and
// nothing that is no file, such as a device or a link.
func canWrite(flag, file, input string) error {
	if file == "" {
		return nil
	}
	err := mayReplace(file, input)
	if err == nil {
		err = disk.CanWrite(file)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// mayReplace refuses a file that is there and is not for a report to replace.
func mayReplace(file, input string) error {
	refused := func(why string) error {
		return &fs.PathError{Op: "create", Path: file, Err: errors.New(why)}
	}
	st, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return refused("something else than a file is there")
	case plan.IsSafetensors(file):
		return refused("weights are there")
	case !model.Exists(input):
		return nil
	}
	root, err := filepath.EvalSymlinks(input)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if own, missing := os.Stat(name); missing == nil && os.SameFile(own, st) {
			return refused("a file of " + input + " is there")
		}
		return err
	})
}

// outputError says that a result could not be printed. It hides its cause: no hint about full disks
// is about this one.
type outputError struct{ cause error }

func (e outputError) Error() string { return "write to standard output: " + e.cause.Error() }
