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

	"github.com/df11-convert/df11-convert/internal/spans"
)

// Kept is a spool file that outlives the process, so that a later run on the same disk goes on with it. The file alone says
// nothing: which tensors are there, whole and with which checksum, is in the ledger.
type Kept struct {
	*os.File
	dir  *os.Root
	name string
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
func createKept(dir *os.Root, name string) (*Kept, error) {
	if err := removeKept(dir, name); err != nil {
		return nil, err
	}
	return openFile(dir, name, os.O_CREATE|os.O_EXCL)
}

// OpenKept opens the spool that an earlier run has left.
func OpenKept(dir *os.Root, name string) (*Kept, error) { return openFile(dir, name, 0) }

func openFile(dir *os.Root, name string, flags int) (*Kept, error) {
	f, err := dir.OpenFile(name, os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return &Kept{f, dir, name}, nil
}

// Keep closes the spool and leaves the file to a later run.
func (s *Kept) Keep() error {
	return ended(s.Close())
}

// Release closes and deletes the spool.
func (s *Kept) Release() error {
	if err := s.Close(); err != nil {
		return ended(err)
	}
	return removeKept(s.dir, s.name)
}

// ended allows to close a file twice.
func ended(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// removeKept deletes a kept spool, if it is there.
func removeKept(dir *os.Root, name string) error {
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
func RemoveKept(dir *os.Root, o *spans.Output) error { return removeKept(dir, KeptName(o)) }
