package disk_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// A folder counts as locked if its lock can't be opened because its holder is removing it.
func TestFileInUseIsLocked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".df11-convert", "lock")
	world.Write(t, path, "")
	name, err := syscall.UTF16PtrFromString(path)
	must(t, err)
	h, err := syscall.CreateFile(name, syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_EXISTING, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	must(t, err)
	if _, err := disk.OpenFolder(disk.Output, dir, 0o666); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	must(t, syscall.CloseHandle(h))
	f, err := disk.OpenFolder(disk.Output, dir, 0o666)
	must(t, err)
	must(t, f.Close())
}
