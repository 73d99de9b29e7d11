package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
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

// TestRemovedLock: who removes a lock leaves no file, and never takes away one that somebody else has got since. Many try
// to get it, remove it, and get it again; no two may hold it at once.
func TestRemovedLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var holders, got atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				l, err := filelock.Acquire(path)
				if errors.Is(err, filelock.ErrLocked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				got.Add(1)
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				holders.Add(-1)
				if err := l.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || got.Load() == 0 {
		t.Errorf("file: %v; taken %d times", err, got.Load())
	}
}
