//go:build unix

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// remove takes the name away while the lock is held: after that it could be the name of somebody else's.
func remove(f *os.File) error { return errors.Join(os.Remove(f.Name()), f.Close()) }
