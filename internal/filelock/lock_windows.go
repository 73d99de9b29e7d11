package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

func lock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// remove gives the lock back first: Windows removes no open file. Nor does it remove one that somebody else has opened
// since, whose it then is.
func remove(f *os.File) error {
	if err := f.Close(); err != nil {
		return err
	}
	err := os.Remove(f.Name())
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
