// Package filelock takes an exclusive lock on a path, so that two processes never write one folder. It does not wait: a
// lock that is taken is an error that says so. The system drops the lock when the process ends, however it ends.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/gofrs/flock"
)

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// InUse reports whether Windows has refused to open a file or folder because another program removes it or keeps it to itself.
func InUse(err error) bool {
	const sharingViolation = syscall.Errno(32)
	return runtime.GOOS == "windows" && errors.Is(err, sharingViolation)
}

// Lock is a held lock.
type Lock struct{ f *flock.Flock }

// Acquire creates the file at path if need be and locks it. The error wraps ErrLocked if somebody else has it.
func Acquire(path string) (*Lock, error) {
	for {
		f := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
		locked, err := f.TryLock()
		if err != nil && !InUse(err) {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if !locked {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, ErrLocked), f.Close())
		}
		there, err := isAt(f)
		if err == nil && there {
			return &Lock{f}, nil
		}
		_ = f.Close() // its holder has removed it meanwhile, so that it keeps nobody out
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
	}
}

// isAt reports whether the locked file is still the one at its path.
func isAt(f *flock.Flock) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(f.Path())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

// Release gives the lock back. The file stays.
func (l *Lock) Release() error { return l.f.Close() }

// Remove removes the file and gives the lock back. Nobody can hold another lock on the path before that.
func (l *Lock) Remove() error {
	if runtime.GOOS == "windows" { // where an open file can't be removed; it stays if somebody else has taken it by now
		err := l.Release()
		_ = os.Remove(l.f.Path())
		return err
	}
	return errors.Join(os.Remove(l.f.Path()), l.Release())
}
