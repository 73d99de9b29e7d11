package convert_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/progress"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// manyOutputs is a model of 14 MB whose units give files of 1.2 MB.
func manyOutputs() *hubtest.Model {
	return hubtest.NewLlama(17, hubtest.ModelOptions{Hidden: 256, Heads: 4, Vocab: 64, Layers: 8, Extra: hubtest.OwnPicture})
}

// TestLeftoversKeepToTheDisk checks that finished outputs of a stopped run count against the next
// run's disk budget until they are uploaded. In virtual time, an upload that takes a second ends
// once the run has come as far as it can without it.
func TestLeftoversKeepToTheDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, leftoversKeepToTheDisk)
}

func leftoversKeepToTheDisk(t *testing.T) {
	const disk = 6_000_000
	want := reference(t, manyOutputs())
	w, work := newWorld(t, manyOutputs()), filepath.Join(t.TempDir(), "work")
	w.change = append(w.change, func(o *convert.Options) { o.Disk = disk })
	finished := make(chan struct{})
	_ = w.stopped(t, work, func(stop func()) {
		w.log.hook = func(string) {
			if len(w.log.files) == 5 {
				close(finished)
			}
		}
		w.Inject(hubtest.Fault{Method: "PUT", Times: always, Action: func(x *hubtest.Exchange) {
			<-finished
			stop()
			hubtest.Error(503, "", "")(x)
		}})
	})
	if left, err := filepath.Glob(filepath.Join(work, ".df11-convert", "files", "*.safetensors")); err != nil || len(left) < 5 {
		t.Fatal(left, err)
	}
	w.change = w.change[:1]
	var most atomic.Int64
	w.Inject(hubtest.Fault{Method: "PUT", Times: budget.Uploads, Action: func(x *hubtest.Exchange) {
		time.Sleep(time.Second)
		most.Store(max(most.Load(), folderBytes(work)))
		x.Next(x.ResponseWriter)
	}})
	if _, err := w.convert(t.Context(), t, work); err != nil {
		t.Fatal(err)
	}
	if n := most.Load(); n > disk+journalRoom || n < 4_000_000 {
		t.Errorf("%d bytes on disk, %d are allowed", n, disk)
	}
	sameFiles(t, w.target(), want)
}

// stoppedAtCommit runs a conversion until it has uploaded what its first commit is of.
func (w *world) stoppedAtCommit(t *testing.T, work string) {
	t.Helper()
	_ = w.stopped(t, work, func(stop func()) {
		w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Times: always, Action: func(x *hubtest.Exchange) {
			stop()
			hubtest.Error(503, "", "")(x)
		}})
	})
}

// TestNoUploadedFileStaysOnTheDisk checks that the next run deletes an output that was uploaded
// just before a kill once it commits it.
func TestNoUploadedFileStaysOnTheDisk(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	w, work := newWorld(t, small()), t.TempDir()
	w.stoppedAtCommit(t, work)
	var left []string
	for _, o := range readJournal(t, w.planned(t), work).Outputs() {
		if o.Uploaded {
			left = append(left, filepath.Join(work, ".df11-convert", "files", o.Path))
		}
	}
	if len(left) == 0 {
		t.Fatal("nothing was uploaded before the stop")
	}
	for _, name := range left {
		shared.Write(t, name, "left")
	}
	w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Action: func(x *hubtest.Exchange) {
		for _, name := range left {
			if _, err := os.Stat(name); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", filepath.Base(name), err)
			}
		}
		x.Next(x.ResponseWriter)
	}})
	if _, err := w.convert(t.Context(), t, work); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, w.target(), want)
}

// TestSmallResultWaits checks that a small result takes one commit and one inquiry. It counts as
// uploaded, and after a kill the next run takes it from the folder without reading weights again.
// On a small disk, or with a time between commits, it goes in batches.
func TestSmallResultWaits(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	questions := func(w *world) [3]int {
		return [3]int{w.Count("POST", "*/preupload/*"), w.Count("POST", "*/objects/batch"), w.Count("POST", anyCommit)}
	}
	waits := func(o *convert.Options) { o.CommitWait = 0 }
	onServers(t, func(t *testing.T, ways hubtest.Option) {
		undisturbed := newWorld(t, small(), ways)
		undisturbed.mustConvert(t)
		w, work := newWorld(t, small(), ways), t.TempDir()
		w.change = append(w.change, waits)
		w.stoppedAtCommit(t, work)
		w.unfinished(t)
		for _, o := range readJournal(t, w.planned(t), work).Outputs() {
			if !o.Here || o.Uploaded {
				t.Errorf("%+v", o)
			}
		}
		w.ResetLog()
		w.since = w.era
		counters := &progress.Counters{}
		_, err := w.convert(t.Context(), t, work, func(o *convert.Options) { o.Progress = counters })
		shared.Must(t, err)
		sameFiles(t, w.target(), undisturbed.target())
		if got := questions(w); got[0] > 2 || got[1] != 1 || got[2] != 1 { // one may ask for access
			t.Errorf("asked %d times", got)
		}
		if n := w.sourceBytes(); n > small().Size() { // which the plan reads whole
			t.Errorf("%d bytes of weights were read again", n)
		}
		if done, all := counters.Uploaded.Load(), counters.OutputBytes.Load(); done != all || all == 0 {
			t.Errorf("%d of %d bytes count as uploaded", done, all)
		}
	})
	for name, change := range map[string]func(*convert.Options){
		"disk": func(o *convert.Options) { o.Disk = 5_000_000 }, "wait": func(o *convert.Options) { o.CommitWait = time.Hour },
	} {
		w := newWorld(t, small())
		w.mustConvert(t, waits, change)
		if got := questions(w); got[0] < 3 || got[2] != 2 {
			t.Errorf("%s: asked %d times", name, got)
		}
		sameFiles(t, w.target(), want)
	}
}

// TestProgressEndsAtTheEnd checks that all work counts as done at the end, including that of
// earlier runs.
func TestProgressEndsAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, out := range []string{"", t.TempDir()} {
		w, work := newWorld(t, small()), t.TempDir()
		share := func() float64 {
			var p progress.Counters
			_, err := w.convert(t.Context(), t, work, func(o *convert.Options) { o.Progress, o.OutDir = &p, out })
			if done := p.Share(); err != nil && done >= 1 {
				t.Errorf("folder %q: a failed run counts %v as done", out, done)
			}
			return p.Share()
		}
		w.Inject(hubtest.Fault{Method: "POST", Path: "*/preupload/*", Nth: 2, Action: hubtest.Error(403, "", "no")})
		share()
		if done := share(); done != 1 {
			t.Errorf("folder %q: a resumed run ends at %v", out, done)
		}
	}
}

// logHook is a log handler that calls a function with every record.
type logHook func(slog.Record)

func (h logHook) Enabled(context.Context, slog.Level) bool { return true }
func (h logHook) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h logHook) WithGroup(string) slog.Handler            { return h }

func (h logHook) Handle(_ context.Context, r slog.Record) error {
	h(r)
	return nil
}

// TestLostUploadsOfAFolderAreSentAgain checks that outputs that the target's store lost are sent
// again if the folder has them, and not made again.
func TestLostUploadsOfAFolderAreSentAgain(t *testing.T) {
	t.Parallel()
	w, out := newWorld(t, small()), t.TempDir()
	w.Inject(hubtest.Fault{Name: "commit-400-lfs"})
	if _, err := w.convert(t.Context(), t, out, func(o *convert.Options) { o.OutDir = out }); err != nil || w.FaultsActed("commit-400-lfs") != 1 {
		t.Fatal(w.FaultsActed("commit-400-lfs"), err)
	}
	made := w.log.take()
	if slices.Sort(made); len(made) != len(slices.Compact(slices.Clone(made))) {
		t.Errorf("made were %v", made)
	}
	equalsFolder(t, w, out)
}
