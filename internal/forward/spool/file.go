package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// NewTemp returns an empty spool in a file of dir. If the system allows it, the file has no name,
// so a killed process leaves nothing behind.
func NewTemp(dir *os.Root) (*Spool, error) {
	name := disk.TempName()
	s, err := openFile(dir, name, os.O_CREATE|os.O_EXCL)
	if err == nil {
		_ = remove(dir, name) // otherwise it's removed at the end
	}
	return s, err
}

// createKept replaces any existing file, which may be stale, or a hard link to someone else's file.
func createKept(dir *os.Root, o *spans.Output) (*Spool, error) {
	if err := RemoveKept(dir, o); err != nil {
		return nil, err
	}
	return openKept(dir, o, os.O_CREATE|os.O_EXCL)
}

func openKept(dir *os.Root, o *spans.Output, flags int) (*Spool, error) {
	s, err := openFile(dir, names.KeptSpool(o.Path), flags)
	if err == nil {
		s.Kept = true
	}
	return s, err
}

func openFile(dir *os.Root, name string, flags int) (*Spool, error) {
	f, err := dir.OpenFile(name, os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return &Spool{ReaderAt: f, WriterAt: f, end: func(gone bool) error {
		err := f.Close()
		if err == nil && gone {
			err = remove(dir, name)
		}
		return err
	}}, nil
}

func remove(dir *os.Root, name string) error {
	if err := dir.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveKept deletes the kept spool of an output, if there is one.
func RemoveKept(dir *os.Root, o *spans.Output) error { return remove(dir, names.KeptSpool(o.Path)) }
