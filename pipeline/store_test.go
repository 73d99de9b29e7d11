package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/filelock"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// TestStoreTakenOver: a run that ends well removes what is its own, and nothing of the run that takes the folder next,
// however soon that comes. Many try to get one folder; who has it finds what it has written.
func TestStoreTakenOver(t *testing.T) {
	for name, opt := range map[string]Options{"work folder": {WorkDir: filepath.Join(t.TempDir(), "work")}, "output folder": {OutDir: t.TempDir()}} {
		opt.Plan, opt.Model = &plan.Plan{}, &Model{}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 200 {
					useStore(t, &opt)
				}
			})
		}
		wg.Wait()
		if _, err := os.Stat(filepath.Join(opt.OutDir+opt.WorkDir, stateDir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something is left: %v", name, err)
		}
	}
}

// useStore opens a store, if nobody else has it, writes a journal, finds it, and ends.
func useStore(t *testing.T, opt *Options) {
	s, err := openStore(opt)
	if errors.Is(err, filelock.ErrLocked) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	if err := s.saveJournal(newLedger("digest", "part")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.journalPath("part")); err != nil {
		t.Error(err)
	}
	if err := s.close(true); err != nil {
		t.Error(err)
	}
}
