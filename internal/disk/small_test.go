package disk_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

// A large file costs no more than the limit, and neither does an endless one.
func TestReadEndsAtTheLimit(t *testing.T) {
	const limit = 1000
	dir := t.TempDir()
	for size, ok := range map[int64]bool{0: true, limit: true, limit + 1: false, 1 << 40: false} {
		path := filepath.Join(dir, "file")
		if err := errors.Join(os.WriteFile(path, nil, 0o666), os.Truncate(path, size)); err != nil {
			if size > 1<<30 {
				continue // a file system without files of this size
			}
			t.Fatal(err)
		}
		for name, read := range map[string]func(string, int64) ([]byte, error){"Read": disk.Read, "ReadInput": readInput(t)} {
			alloc.Within(t, 64<<10, func() {
				b, err := read(path, limit)
				var large *disk.TooLargeError
				if ok && (err != nil || int64(len(b)) != size) || !ok && !errors.As(err, &large) {
					t.Errorf("%s of %d bytes: %d bytes, %v", name, size, len(b), err)
				}
			})
		}
	}
	if _, err := os.Stat("/dev/zero"); err == nil {
		var large *disk.TooLargeError
		alloc.Within(t, 64<<10, func() {
			if _, err := disk.ReadInput(t.Context(), "/dev/zero", limit); !errors.As(err, &large) {
				t.Error(err)
			}
		})
		if _, err := disk.Read("/dev/zero", limit); err == nil {
			t.Error(err)
		}
	}
	if _, err := disk.Read(dir, limit); err == nil {
		t.Error(err)
	}
}

// A shell passes <(command) as a pipe.
// readInput is ReadInput in the form of Read.
func readInput(t *testing.T) func(string, int64) ([]byte, error) {
	return func(path string, limit int64) ([]byte, error) {
		return disk.ReadInput(t.Context(), path, limit)
	}
}

func TestReadInputTakesPipes(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("no /dev/fd here:", err)
	}
	if _, err := w.WriteString("{}"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if b, err := disk.ReadInput(t.Context(), path, 10); err != nil || string(b) != "{}" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := disk.Read(path, 10); err == nil {
		t.Error(err)
	}
}
