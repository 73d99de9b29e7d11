package target_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/internal/folder"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/target"
)

// TestFolderTakenOver: a run that ends well removes what is its own, and nothing of the run that
// takes the folder next, however soon that comes. Many try to get one folder; who has it has it
// alone, and finds what it has written.
func TestFolderTakenOver(t *testing.T) {
	for name, stays := range map[string]bool{"work folder": false, "output folder": true} {
		root := filepath.Join(t.TempDir(), "folder")
		var wg sync.WaitGroup
		var holders, got atomic.Int32
		for range 4 {
			wg.Go(func() {
				for range 100 {
					useFolder(t, root, stays, &holders, &got)
				}
			})
		}
		wg.Wait()
		if _, err := os.Stat(filepath.Join(root, ".df11-convert")); !errors.Is(err, os.ErrNotExist) || got.Load() == 0 {
			t.Errorf("%s: something is left: %v; taken %d times", name, err, got.Load())
		}
	}
}

// useFolder opens a folder, if nobody else has it, writes a journal, finds it, and ends.
func useFolder(t *testing.T, root string, stays bool, holders, got *atomic.Int32) {
	p := &plan.Plan{}
	f, err := target.OpenFolder(t.Context(), root, stays, target.NewOwner(p, "", "part", false, nil), 0o666)
	if errors.Is(err, folder.ErrLocked) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	got.Add(1)
	if n := holders.Add(1); n != 1 {
		t.Errorf("%d have the folder", n)
	}
	l := ledger.New("digest", stays)
	if err := f.Save(l); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(f.State.Name(), "part.json")); err != nil {
		t.Error(err)
	}
	holders.Add(-1)
	if err := errors.Join(l.Close(), f.Close(true)); err != nil {
		t.Error(err)
	}
}
