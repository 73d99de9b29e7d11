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
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// results is stdout. It makes text printable and keeps the first error, so callers can ignore write
// errors, and a run that loses its result still fails. A closed stdout gives none: Go opens
// /dev/null for it, as other programs do that want no output.
type results struct {
	to  *os.File
	err error
}

func (r *results) Write(b []byte) (int, error) {
	n := len(b)
	_, err := io.WriteString(r.to, human.Printable(string(b)))
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // without the name
	}
	if err != nil {
		err = outputError{err}
		r.err, n = cmp.Or(r.err, err), 0
	}
	return n, err
}

// width returns the width of the terminal that shows the results; 0 if none does.
func (r *results) width() int {
	if !term.IsTerminal(int(r.to.Fd())) {
		return 0
	}
	width, _ := size(r.to)
	return width
}

// canWrite checks, before any work, that the file a flag names can be written. It refuses to
// replace weights, files of a local input, and anything that isn't a regular file.
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

// mayReplace refuses existing files that a report must not replace.
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
		return refused("it exists and isn't a regular file")
	case reader.IsSafetensors(file):
		return refused("it holds weights")
	case !model.Exists(input):
		return nil
	}
	root, err := filepath.EvalSymlinks(input)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if own, missing := os.Stat(name); missing == nil && os.SameFile(own, st) {
			return refused("it's a file of " + input)
		}
		return err
	})
}

// outputError reports that a result couldn't be printed. It doesn't unwrap to its cause, because
// hints about full disks don't fit it.
type outputError struct{ cause error }

func (e outputError) Error() string { return "write to standard output: " + e.cause.Error() }
