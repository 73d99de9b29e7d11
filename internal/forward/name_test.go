package forward

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// createIn creates a file in a folder.
func createIn(t *testing.T, dir string) *disk.File {
	t.Helper()
	f, err := disk.CreateIn(world.Root(t, dir), "model.safetensors", ".", 0o666, 0)
	must(t, err)
	return f
}

// If a file can't be finished, the stage ends although the previous stage has more. No file
// appears, and no hash keeps running.
func TestNamingErrorEndsAtOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // it fails if a goroutine is left
		file := createIn(t, dir)
		if _, err := file.WriteAt([]byte("short"), 0); err != nil {
			t.Fatal(err)
		}
		d := &draft{task: &fetch.Task{Output: &spans.Output{Path: "model.safetensors"}}, file: file, size: 100}
		d.startHash(t.Context(), new(progress.Counters))
		equal := make(chan compared, 1) // never closed
		equal <- compared{d}
		w := &maker{Job: &Job{Ledger: ledger.New("", false), Means: Means{Progress: new(progress.Counters)}}}
		g, ctx := errgroup.WithContext(t.Context())
		stage(ctx, g, 1, 0, equal, w.name, stays)
		if g.Wait() == nil {
			t.Error("a file of the wrong size was finished")
		}
	})
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A discarded file stays until its hash, which reads it, has ended.
func TestNoFileGoesWhileItIsHashed(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		file := createIn(t, dir)
		hashed := make(chan struct{})
		sum := func() (string, error) { <-hashed; return "", nil }
		go (&draft{file: file, sum: sum, stopHash: func() {}}).discard()
		for _, want := range []int{1, 0} {
			synctest.Wait()
			if left, err := os.ReadDir(dir); err != nil || len(left) != want {
				t.Errorf("%d files are there, want %d (%v)", len(left), want, err)
			}
			if want == 1 {
				close(hashed)
			}
		}
	})
}
