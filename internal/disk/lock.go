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

// ErrLocked reports that another run uses the folder.
var ErrLocked = errors.New("locked by another run")

const lockName = "lock"

// inUse reports whether Windows refused to open a file because a run that is just ending is
// removing it.
func inUse(err error) bool {
	const sharingViolation = syscall.Errno(32)
	return runtime.GOOS == "windows" && errors.Is(err, sharingViolation)
}

// tryLock is replaced by tests of file systems without locks.
var tryLock = (*flock.Flock).TryLock

// noLocks reports whether a file system has no locks: Lustre that's mounted without its option flock
// (ENOSYS, https://doc.lustre.org/lustre_manual.xhtml), NFS without a lock service (ENOLCK, fcntl(2)),
// and some FUSE file systems. huggingface_hub goes on there, too: utils/_fixes.py, WeakFileLock.
func noLocks(err error) bool {
	return errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK) ||
		errors.Is(err, errors.ErrUnsupported)
}

// takeLock locks the folder, unless its file system has no locks. The lock file must still be the one
// in the open state folder. Otherwise the run that removed it is just ending, and the lock would keep
// no other run out.
func (f *Folder) takeLock() error {
	lock := flock.New(filepath.Join(f.State.Name(), lockName), flock.SetFlag(os.O_CREATE|os.O_RDWR),
		flock.SetPermissions(0o600))
	locked, err := tryLock(lock)
	if noLocks(err) {
		f.Unlocked = true
		return errors.Join(lock.Close(), f.State.RemoveAll(lockName))
	}
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

// removeLock removes the lock file, then releases the lock. Before that, no other run can lock the
// folder.
func (f *Folder) removeLock() error {
	remove := func() error { return f.State.Remove(lockName) }
	// Windows can't remove an open file; it stays if another run has taken it by now
	if runtime.GOOS == "windows" {
		err := f.lock.Close()
		_ = remove()
		return err
	}
	return errors.Join(remove(), f.lock.Close())
}
