package pipeline_test

import (
	"bytes"
	"encoding/json"
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

// oldForm turns a journal into version 1: one JSON value, with one checkpoint for each source file, and another one that
// counts on spools in a form that no program reads any more.
func oldForm(t *testing.T, journal []byte) []byte {
	t.Helper()
	var old struct {
		Version int              `json:"version"`
		Plan    string           `json:"plan"`
		Part    string           `json:"part"`
		Source  string           `json:"source,omitempty"`
		Claims  []string         `json:"claims,omitempty"`
		Outputs []*ledger.Output `json:"outputs"`
		Files   []map[string]any `json:"files"`
	}
	files := map[string]ledger.Checkpoint{}
	for line := range bytes.Lines(journal) {
		var r struct {
			Output   *ledger.Output
			Uploaded string
			File     *ledger.Checkpoint
		}
		if err := errors.Join(json.Unmarshal(line, &old), json.Unmarshal(line, &r)); err != nil {
			t.Fatal(err)
		}
		if r.Output != nil {
			old.Outputs = append(old.Outputs, r.Output)
		}
		for _, o := range old.Outputs {
			o.Uploaded = o.Uploaded || o.Path == r.Uploaded
		}
		if r.File != nil {
			files[r.File.File] = *r.File
		}
	}
	for _, c := range files {
		old.Files = append(old.Files, map[string]any{
			"file": c.File, "offset": c.Offset, "state": c.State, "integrity": c.Integrity, "sha256": c.SHA256,
			"kept_offset": c.Offset + 1, "kept_state": []byte{1},
		})
	}
	old.Version = 1
	b, err := json.MarshalIndent(old, "", " ")
	if err != nil || len(old.Outputs) == 0 {
		t.Fatal("no output is finished", err)
	}
	return b
}

// TestOldJournalInAFolder: what a program of version 1 has finished in an output folder is not made again, and the result is
// the same.
func TestOldJournalInAFolder(t *testing.T) {
	w, out := newWorld(t, small()), t.TempDir()
	w.change = append(w.change, inFolder(out))
	interrupted(t, w, out, func(stop func()) {
		w.log.hook = func(string) {
			if len(w.log.files) == 3 {
				stop()
			}
		}
	})
	done := w.log.take()
	name := filepath.Join(out, journalFile)
	writeFile(t, name, oldForm(t, readFile(t, name)))
	writeFile(t, filepath.Join(out, ".df11-convert", "spool-0123456789abcdef.json"), []byte("{}")) // what that program kept
	if _, err := w.convert(t.Context(), t, out); err != nil {
		t.Fatal(err)
	}
	if twice := both(w.log.take(), done); len(twice) > 0 {
		t.Errorf("%v were made twice", twice)
	}
	sameFolder(t, out, localResult(t, small()))
	if files := listing(t, out); strings.Contains(strings.Join(files, "\n"), ".df11-convert") {
		t.Errorf("something is left: %v", files)
	}
}

// TestOldJournalOfAWorkFolder: what a program of version 1 has uploaded and not committed is committed, not made again.
func TestOldJournalOfAWorkFolder(t *testing.T) {
	w, work := newWorld(t, small()), t.TempDir()
	w.Inject(hubtest.Fault{Name: "commit-quota", Times: hubtest.Always})
	if _, err := w.convert(t.Context(), t, work); err == nil {
		t.Fatal("a commit over quota went through")
	}
	w.ClearFaults()
	done := w.log.take()
	name := filepath.Join(work, journalFile)
	old := oldForm(t, readFile(t, name))
	if !bytes.Contains(old, []byte(`"uploaded": true`)) {
		t.Fatalf("nothing is uploaded:\n%s", old)
	}
	writeFile(t, name, old)
	if _, err := w.convert(t.Context(), t, work); err != nil {
		t.Fatal(err)
	}
	if twice := both(w.log.take(), done); len(twice) > 0 {
		t.Errorf("%v were made twice", twice)
	}
	sameFiles(t, w.target(), reference(t, small()))
	checkPublished(t, w)
}

// TestOldJournalInARepo: another machine goes on with what a program of version 1 has published.
func TestOldJournalInARepo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, deep())
	interrupted(t, w, t.TempDir(), func(stop func()) {
		w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Nth: 2, Action: func(x *hubtest.Exchange) { stop(); hubtest.Error(503, "", "")(x) }})
	})
	committed := weightFiles(w.target())
	journal, err := w.ReadFile(targetRepo, "main", ".df11/part-1-of-1.json")
	if err != nil || len(committed) == 0 {
		t.Fatal(committed, err)
	}
	w.Push(targetRepo, "main", map[string][]byte{".df11/part-1-of-1.json": oldForm(t, journal)})
	w.log.take()
	w.mustConvert(t)
	if twice := both(w.log.take(), committed); len(twice) > 0 {
		t.Errorf("%v were made twice", twice)
	}
	sameFiles(t, w.target(), reference(t, deep()))
	checkPublished(t, w)
}

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
