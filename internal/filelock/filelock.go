// Package filelock takes an exclusive lock on a path, so that two processes never write one folder. It does not wait: a
// lock that is taken is an error that says so. The system drops the lock when the process ends, however it ends.
package filelock

import (
	"errors"
	"fmt"
	"os"
)

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// Lock is a held lock.
type Lock struct{ f *os.File }

// Acquire creates the file at path if need be and locks it. The error wraps ErrLocked if somebody else has it.
func Acquire(path string) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err := lock(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		there, err := isAt(f, path)
		if err == nil && there {
			return &Lock{f}, nil
		}
		f.Close() // its holder has removed it meanwhile, so that it keeps nobody out
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
	}
}

// isAt tells whether an open file is the one at path.
func isAt(f *os.File, path string) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

// Release gives the lock back. The file stays.
func (l *Lock) Release() error { return l.f.Close() }

// Remove removes the file and gives the lock back. Nobody can hold another lock on the path before that.
func (l *Lock) Remove() error { return remove(l.f) }
