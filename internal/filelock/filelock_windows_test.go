package filelock_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/internal/filelock"
)

// TestFileInUseIsLocked: a lock file that can't be opened, since its holder is removing it, is held.
func TestFileInUseIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_WRITE, 0, nil, syscall.CREATE_NEW, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Acquire(path); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	if err := syscall.CloseHandle(h); err != nil {
		t.Fatal(err)
	}
	l, err := filelock.Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
}
