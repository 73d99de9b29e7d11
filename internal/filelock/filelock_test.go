package filelock_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/filelock"
)

func TestSecondHolderIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := filelock.Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Acquire(path); !errors.Is(err, filelock.ErrLocked) {
		t.Fatalf("second lock: %v, want ErrLocked", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := filelock.Acquire(path)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
}
