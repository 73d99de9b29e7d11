package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// NewTemp makes an empty spool in a file of dir. It has no name where the system allows that, so
// that a killed process leaves nothing behind.
func NewTemp(dir *os.Root) (*Spool, error) {
	name := atomicfile.TempName()
	s, err := openFile(dir, name, os.O_CREATE|os.O_EXCL)
	if err == nil {
		_ = remove(dir, name) // else it is removed in the end
	}
	return s, err
}

// KeptName is the name of the kept spool of an output.
func KeptName(o *spans.Output) string {
	sum := sha256.Sum256([]byte(o.Path))
	return "spool-" + hex.EncodeToString(sum[:8]) + ".data"
}

// isKeptName reports whether a file name is one of KeptName.
func isKeptName(name string) bool {
	ok, _ := path.Match("spool-"+strings.Repeat("[0-9a-f]", 16)+".data", name)
	return ok
}

// createKept makes a new file: one that is there may be useless, or have another name elsewhere.
func createKept(dir *os.Root, o *spans.Output) (*Spool, error) {
	if err := RemoveKept(dir, o); err != nil {
		return nil, err
	}
	return openKept(dir, o, os.O_CREATE|os.O_EXCL)
}

func openKept(dir *os.Root, o *spans.Output, flags int) (*Spool, error) {
	s, err := openFile(dir, KeptName(o), flags)
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

// Names lists the kept spools of a folder.
func Names(dir *os.Root) (names []string, err error) {
	entries, err := fs.ReadDir(dir.FS(), ".")
	for _, e := range entries {
		if isKeptName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// RemoveKept deletes the kept spool of an output, if it is there.
func RemoveKept(dir *os.Root, o *spans.Output) error { return remove(dir, KeptName(o)) }
