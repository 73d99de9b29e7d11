package pipeline_test

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestNewerJournal: a journal of a newer program ends the run with an error that says what can be done, in a folder and in a
// repo. Neither is changed.
func TestNewerJournal(t *testing.T) {
	refused := func(err error) {
		t.Helper()
		if e := (*ledger.VersionError)(nil); !errors.As(err, &e) || e.Version != 3 || !strings.Contains(e.Hint(), "newer") {
			t.Errorf("got %v", err)
		}
	}
	newer := []byte(`{"version":3,"plan":"0","part":"part-1-of-1","source":"` + sourceRepo + `"}` + "\n" + `{"news":1}` + "\n")
	w, out := newWorld(t, small()), t.TempDir()
	writeFile(t, filepath.Join(out, journalFile), newer)
	writeFile(t, filepath.Join(out, ".df11-convert", "lock"), nil)
	writeFile(t, filepath.Join(out, ".df11-convert", "spool-0123456789abcdef.data"), []byte("kept"))
	before := folder(t, out)
	_, err := w.convert(t.Context(), t, out, inFolder(out))
	refused(err)
	if !maps.Equal(folder(t, out), before) {
		t.Errorf("the folder was changed: %v", listing(t, out))
	}

	head := w.AddRepo(targetRepo, map[string][]byte{".df11/part-1-of-1.json": newer})
	_, err = w.convert(t.Context(), t, t.TempDir())
	refused(err)
	if w.Head(targetRepo, "main") != head {
		t.Error("the repo was changed")
	}
}

// TestHashedThenRanges: an output of which some tensors came under a hash and some by ranges, in a later run, is under no hash.
// A run that streams the rest proves its source files.
func TestHashedThenRanges(t *testing.T) {
	t.Parallel()
	base := newWorld(t, severalTensors(hubtest.OrderModel))
	base.mustConvert(t)
	p := base.planned(t)
	w := newWorld(t, severalTensors(hubtest.OrderModel))
	w.beforeKill = func(work string) { w.catchUp(t, p, work, underWay) }
	work := w.killed(t, base.Count("GET", "/repos/*")*8/10, onDisk)
	before := readJournal(t, p, work)
	w.log.take()
	if _, err := w.convert(t.Context(), t, work, onDisk, inPart); err != nil {
		t.Fatal(err)
	}
	byRange, mixed := map[string]bool{}, false // source files of the tensors that came by ranges
	for _, o := range spans.Outputs(p) {
		if len(o.Units) == 0 || before.Done(o.Path) {
			continue
		}
		for x := range o.Tensors() {
			if !slices.ContainsFunc(before.Tensors(o.Path), func(h ledger.Tensor) bool { return h.At == x.At }) {
				byRange[p.Source().Weights[x.File].File.Path] = true
				mixed = mixed || len(before.Tensors(o.Path)) > 0
			}
		}
	}
	if !mixed {
		t.Fatal("no output was begun by the run that was killed")
	}
	if _, err := w.convert(t.Context(), t, work, onDisk); err != nil {
		t.Fatal(err)
	}
	sameWeights(t, w, base.target())
	for _, f := range w.manifest(t).Source.Files {
		if byRange[f.Path] != (f.Integrity == metadata.Proof) {
			t.Errorf("%s: %s; by ranges came bytes of %v", f.Path, f.Integrity, byRange)
		}
	}
}

// TestUploadsGoOnDuringCommit: while a commit is under way, further outputs are uploaded; another commit begins only once it
// has ended.
func TestUploadsGoOnDuringCommit(t *testing.T) {
	const layers = 20
	w := newWorld(t, hubtest.NewLlama(11, hubtest.ModelOptions{Layers: layers, Hidden: 16, Heads: 2, Vocab: 64, Extra: noPicture}))
	uploads := make(chan struct{}, 4*layers)
	var open, most atomic.Int32
	w.Inject(
		hubtest.Fault{Method: "POST", Path: "*/preupload/*", Times: always, Action: func(x *hubtest.Exchange) {
			x.Next(x.ResponseWriter)
			uploads <- struct{}{}
		}},
		hubtest.Fault{Method: "POST", Path: anyCommit, Times: always, Action: func(x *hubtest.Exchange) {
			most.Store(max(most.Load(), open.Add(1)))
			defer open.Add(-1)
			if len(w.Commits(targetRepo, "main")) == 1 { // the first batch waits until most of the others are there
				if len(ourGoroutines(t)) == 0 {
					t.Error("noGoroutines does not see a run that is under way")
				}
				for range layers / 2 {
					select {
					case <-uploads:
					case <-time.After(time.Minute):
						t.Error("no upload comes while a commit is under way")
						return
					}
				}
			}
			x.Next(x.ResponseWriter)
		}},
	)
	w.mustConvert(t, func(o *pipeline.Options) { o.CommitWait = 1 })
	if most.Load() != 1 {
		t.Errorf("%d commits at a time", most.Load())
	}
	if n := w.Count("POST", anyCommit); n < 3 {
		t.Errorf("%d commits", n)
	}
}
