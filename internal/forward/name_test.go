package forward

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
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

// written is a source of one file that was written to.
type written struct{ model.Source }

func (written) Unchanged(int) error { return &model.ChangedError{File: "model.safetensors"} }

// An output whose source was written to gets no name, and the ledger doesn't list it: its bytes may
// not be those that were hashed.
func TestNoNameForAChangedSource(t *testing.T) {
	dir := t.TempDir()
	outputs := world.Got(spans.Outputs(&plan.Plan{OutputFiles: []plan.OutputFile{{Path: "model.safetensors",
		Plain: []plan.Tensor{{Name: "a", DType: "BF16", Shape: []int64{2}, Length: 4}}}}}))(t)
	d := &draft{task: fetch.NewTasks(outputs)[0], file: createIn(t, dir), size: 4}
	_, err := d.file.WriteAt([]byte("data"), 0)
	must(t, err)
	d.startHash(t.Context(), new(progress.Counters))
	m := &maker{Job: &Job{Source: written{}, Ledger: ledger.New("", false), Log: slog.New(slog.DiscardHandler), Means: Means{Progress: new(progress.Counters)}}}
	_, err = m.name(t.Context(), compared{d})
	if _, changed := errors.AsType[*model.ChangedError](err); !changed || m.Ledger.Done("model.safetensors") {
		t.Errorf("%v; it's done: %v", err, m.Ledger.Done("model.safetensors"))
	}
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

// A kept spool stays until the output has its name, however the run ends: the next one reads its
// tensors from it, by a journal that lists the output already.
func TestSpoolStaysUntilItsOutputIsNamed(t *testing.T) {
	for name, size := range map[string]int64{"named": 4, "stopped before": 5} {
		dir := world.Root(t, t.TempDir())
		outputs := world.Got(spans.Outputs(&plan.Plan{OutputFiles: []plan.OutputFile{{Path: "model.safetensors"}}}))(t)
		l := ledger.New("digest", false)
		must(t, errors.Join(l.Save(dir, "journal"), l.AddTensors([]ledger.Tensor{{Output: "model.safetensors", CRC: 7}})))
		room := &spool.Room{Dir: dir, Disk: spool.NewBudget(0), Keep: true}
		d := &draft{task: fetch.NewTasks(outputs)[0], file: createIn(t, dir.Name()), size: size}
		d.task.Spool = world.Got(room.New(t.Context(), outputs[0]))(t)
		_, err := d.file.WriteAt([]byte("data"), 0)
		must(t, err)
		d.startHash(t.Context(), new(progress.Counters))
		_, _ = d.sum()
		d.sum = func() (string, error) { return "sum", nil }
		m := &maker{Job: &Job{Ledger: l, Log: slog.New(slog.DiscardHandler), Means: Means{Progress: new(progress.Counters)}}}
		_, err = m.name(t.Context(), compared{d})
		must(t, errors.Join(d.task.Spool.Close(), l.Close()))
		next := ledger.New("digest", false)
		next.Read(ledger.ReadJournal(world.Read(t, filepath.Join(dir.Name(), "journal"))))
		next.Keep(func(ledger.Output) bool { return false }) // as if the folder didn't have it
		_, gone := dir.Stat(names.KeptSpool("model.safetensors"))
		if named := err == nil; named != (name == "named") || named == (gone == nil) || !named && len(next.Tensors("model.safetensors")) != 1 || named && len(l.Tensors("model.safetensors")) > 0 {
			t.Errorf("%s: %v, the spool: %v, tensors %v", name, err, gone, next.Tensors("model.safetensors"))
		}
	}
}
