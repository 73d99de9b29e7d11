package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/df11-convert/df11-convert/internal/spans"
)

// Names of kept spools in the state folder.
const (
	keptPrefix = "spool-"
	keptSuffix = ".data"
)

// Kept is a spool file that outlives the process, so that a later run on the same disk goes on with it. The file alone says
// nothing: which tensors are there, whole and with which checksum, is in the ledger.
type Kept struct{ *os.File }

// KeptPath is where the kept spool of an output lies.
func KeptPath(dir string, o *spans.Output) string {
	sum := sha256.Sum256([]byte(o.Path))
	return filepath.Join(dir, keptPrefix+hex.EncodeToString(sum[:8])+keptSuffix)
}

func createKept(path string) (*Kept, error) { return openFile(path, os.O_CREATE) }

// OpenKept opens the spool that an earlier run has left.
func OpenKept(path string) (*Kept, error) { return openFile(path, 0) }

func openFile(path string, flags int) (*Kept, error) {
	f, err := os.OpenFile(path, os.O_RDWR|flags, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return &Kept{f}, nil
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
	return RemoveKept(s.Name())
}

// ended allows to close a file twice.
func ended(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// RemoveKept deletes a kept spool, if it is there.
func RemoveKept(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveOthers deletes from dir every kept spool that is not at one of the paths, and whatever older programs kept beside
// theirs.
func RemoveOthers(dir string, paths map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), keptPrefix) && !paths[path] {
			err = errors.Join(err, RemoveKept(path))
		}
	}
	return err
}
