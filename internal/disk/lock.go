package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/gofrs/flock"
)

// ErrLocked says that another run has the folder.
var ErrLocked = errors.New("locked by another process")

const lockName = "lock"

// inUse reports whether Windows has refused to open something because a run that ends just now
// removes it.
func inUse(err error) bool {
	const sharingViolation = syscall.Errno(32)
	return runtime.GOOS == "windows" && errors.Is(err, sharingViolation)
}

// takeLock locks the folder. A lock that is not, or no longer, the one in the open state keeps
// nobody out: the run that has removed it ends just now.
func (f *Folder) takeLock() error {
	lock := flock.New(filepath.Join(f.State.Name(), lockName), flock.SetFlag(os.O_CREATE|os.O_RDWR),
		flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = ErrLocked
	}
	if err == nil {
		err = f.isLock(lock)
	}
	if err != nil {
		_ = lock.Close()
		return err
	}
	f.lock = lock
	return nil
}

func (f *Folder) isLock(lock *flock.Flock) error {
	locked, err := lock.Stat()
	if err != nil {
		return err
	}
	there, err := f.State.Lstat(lockName)
	if err == nil && !os.SameFile(locked, there) {
		err = fs.ErrNotExist
	}
	return err
}

// removeLock removes the file and gives the lock back. Nobody can hold another lock of the folder
// before that.
func (f *Folder) removeLock() error {
	remove := func() error { return os.Remove(f.lock.Path()) }
	// where an open file can't be removed; it stays if somebody else has taken it by now
	if runtime.GOOS == "windows" {
		err := f.lock.Close()
		_ = remove()
		return err
	}
	return errors.Join(remove(), f.lock.Close())
}
