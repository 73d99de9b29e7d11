package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gofrs/flock"
)

// A folder of a file system without locks can be used; other failures of a lock end the run.
func TestNoLocks(t *testing.T) {
	defer func(real func(*flock.Flock) (bool, error)) { tryLock = real }(tryLock)
	for refused, works := range map[syscall.Errno]bool{syscall.ENOSYS: true, syscall.ENOLCK: true,
		syscall.EOPNOTSUPP: true, syscall.EIO: false, syscall.EACCES: false} {
		tryLock = func(l *flock.Flock) (bool, error) {
			return false, &fs.PathError{Op: "flock", Path: l.Path(), Err: refused}
		}
		dir := filepath.Join(t.TempDir(), "out")
		f, err := OpenFolder(Output, dir, 0o644)
		if (err == nil) != works {
			t.Errorf("%v: %v", refused, err)
		}
		if err != nil {
			continue
		}
		if !f.Unlocked {
			t.Errorf("%v: the folder counts as locked", refused)
		}
		file, err := f.Create("a", 1)
		if err == nil {
			err = file.WriteAll([]byte("a"))
		}
		if err == nil {
			err = f.Close()
		}
		if b, readErr := os.ReadFile(filepath.Join(dir, "a")); err != nil || readErr != nil || string(b) != "a" {
			t.Errorf("%v: %v, %v, %q", refused, err, readErr, b)
		}
	}
}
