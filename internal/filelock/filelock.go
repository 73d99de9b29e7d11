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
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{f}, nil
}

// Release gives the lock back. The file stays: removing it could take a lock away from the next holder.
func (l *Lock) Release() error { return l.f.Close() }
