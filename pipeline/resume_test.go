package pipeline_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/pipeline"
)

var errStop = errors.New("stopped by the test")

// interrupted runs a conversion whose context ends when stop is called, and checks how it ends: with the cause, without
// a config.json on the target, with nothing still running.
func interrupted(t *testing.T, w *world, work string, arm func(stop func())) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	arm(func() { cancel(errStop) })
	_, err := w.convert(ctx, t, work)
	w.ClearFaults()
	w.log.hook = nil
	w.era++
	if err == nil {
		return // it was done before it noticed
	}
	if !errors.Is(err, errStop) {
		t.Errorf("error %v, want the cause of the cancellation", err)
	}
	if _, finished := w.target()["config.json"]; finished && w.Count("POST", "/api/models/*/commit/*") == 0 {
		t.Error("the target has a config.json without a commit")
	}
	noGoroutines(t)
	if n := openFiles(t, work); n > 0 {
		t.Errorf("%d files below the work folder are still open", n)
	}
}

// TestCancelAtEveryRequest: wherever a run is stopped, the next one, on the same disk or a fresh one, ends with the same
// bytes.
func TestCancelAtEveryRequest(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	base := newWorld(t, small())
	base.mustConvert(t)
	for k := 1; k <= len(base.Requests()); k += stride(5) {
		w, work := newWorld(t, small()), t.TempDir()
		if k/stride(5)%2 == 0 {
			w.change = append(w.change, onDisk)
		}
		interrupted(t, w, work, func(stop func()) {
			w.Inject(hubtest.Fault{Nth: k, Action: func(x *hubtest.Exchange) { stop(); x.Next(x.ResponseWriter) }})
		})
		if k%2 == 0 {
			work = t.TempDir() // another machine
		}
		if _, err := w.convert(t.Context(), t, work); err != nil {
			t.Fatalf("after a stop at request %d: %v", k, err)
		}
		sameFiles(t, w.target(), want)
		if t.Failed() {
			t.Fatalf("stopped at request %d", k)
		}
	}
}

// TestCancelAtEveryOutput: a run that keeps its result is stopped after each finished output; the next one converts only
// what is missing.
func TestCancelAtEveryOutput(t *testing.T) {
	t.Parallel()
	want := localResult(t, small())
	files, err := filepath.Glob(filepath.Join(want, "*.safetensors"))
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for k := 1; k <= len(files); k++ {
		w, out := newWorld(t, small()), t.TempDir()
		w.change = append(w.change, func(o *pipeline.Options) { o.OutDir, o.Push = out, nil })
		interrupted(t, w, out, func(stop func()) {
			w.log.hook = func(string) {
				if len(w.log.files) >= k {
					stop()
				}
			}
		})
		done := w.log.take()
		if _, err := w.convert(t.Context(), t, out); err != nil {
			t.Fatal(err)
		}
		again := w.log.take()
		if twice := both(done, again); len(twice) > 0 || len(done)+len(again) != len(files) {
			t.Errorf("stopped after %d outputs: %v were converted twice; %v, then %v", k, twice, done, again)
		}
		sameFolder(t, out, want)
	}
}

// both lists what is in a and in b.
func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// sameFolder compares two results, but for the files that name the source.
func sameFolder(t *testing.T, got, want string) {
	t.Helper()
	entries, err := os.ReadDir(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || namesSource(e.Name()) {
			continue
		}
		if string(readFile(t, filepath.Join(got, e.Name()))) != string(readFile(t, filepath.Join(want, e.Name()))) {
			t.Errorf("%s differs", e.Name())
		}
	}
}

// deep is a model with more outputs than fit one batch.
func deep() *hubtest.Model {
	return hubtest.NewLlama(11, hubtest.ModelOptions{Layers: 70, Hidden: 16, Heads: 2, Vocab: 64, ShardBytes: 60_000, Extra: noPicture})
}

// TestFreshDiskSkipsWhatIsCommitted: a run is stopped between two batches; the next one, on an empty disk, does not
// convert again what the first batch brought, nor read it where no hash needs it.
func TestFreshDiskSkipsWhatIsCommitted(t *testing.T) {
	t.Parallel()
	want := reference(t, deep())
	w := newWorld(t, deep())
	interrupted(t, w, t.TempDir(), func(stop func()) {
		w.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/*", Nth: 2, Action: func(x *hubtest.Exchange) { stop(); hubtest.Error(503, "", "")(x) }})
	})
	w.unfinished(t)
	committed := weightFiles(w.target())
	if len(committed) < 50 {
		t.Fatalf("only %d files are committed", len(committed))
	}
	w.log.take()
	w.ResetLog()
	if _, err := w.convert(t.Context(), t, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if twice := both(w.log.take(), committed); len(twice) > 0 {
		t.Errorf("converted twice: %v", twice)
	}
	all := deep().Size()
	if read := w.sourceBytes() - all; read > all/2 { // reading the headers already takes files as small as these whole
		t.Errorf("%d bytes of %d were read again", read, all)
	}
	sameFiles(t, w.target(), want)
	checkPublished(t, w)
}

// TestFreshDiskReadsTheRest: what the repo's journal says holds for another machine, also if the one that wrote it had finished more
// than it had committed: of the source file only what no committed output was made of is read.
func TestFreshDiskReadsTheRest(t *testing.T) {
	t.Parallel()
	m := hubtest.NewLlama(5, hubtest.ModelOptions{Layers: 100, Hidden: 32, Heads: 2, Vocab: 64, Extra: noPicture})
	w := newWorld(t, m)
	ahead := make(chan struct{})
	n := 0
	w.log.hook = func(string) {
		if n++; n == 52 {
			close(ahead)
		}
	}
	interrupted(t, w, t.TempDir(), func(stop func()) {
		w.Inject(hubtest.Fault{Method: "POST", Path: "*/preupload/*", Nth: 50, Action: func(x *hubtest.Exchange) {
			select {
			case <-ahead:
			case <-t.Context().Done():
			}
			x.Next(x.ResponseWriter)
		}})
		w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Nth: 2, Action: func(x *hubtest.Exchange) { stop(); hubtest.Error(503, "", "")(x) }})
	})
	if n := len(weightFiles(w.target())); n != 50 {
		t.Fatalf("%d files are committed", n)
	}
	journal, err := w.ReadFile(targetRepo, "main", ".df11/part-1-of-1.json")
	if err != nil || strings.Contains(string(journal), `"tensor"`) {
		t.Errorf("the journal counts on spools of another machine (%v)", err)
	}
	p := w.planned(t)
	l, saved := ledger.New(p.Digest(), spans.Part{}.String(), false), int64(0)
	if err := l.Read(journal); err != nil {
		t.Fatal(err)
	}
	for _, o := range spans.Outputs(p) {
		if l.Done(o.Path) {
			saved += o.Size
		}
	}
	w.ResetLog()
	w.mustConvert(t)
	if read := w.sourceBytes(); saved < m.Size()/10 || read > m.Size()*11/10-saved {
		t.Errorf("%d bytes of %d were read again, with 50 of 102 outputs committed, made of %d", read, m.Size(), saved)
	}
	checkPublished(t, w)
}

// weightFiles lists the weight files of a revision.
func weightFiles(files map[string]hubtest.File) (names []string) {
	for p := range files {
		if strings.HasSuffix(p, ".safetensors") {
			names = append(names, p)
		}
	}
	return names
}

// sourceBytes counts what the storage host has sent of the source since ResetLog.
func (w *world) sourceBytes() (n int64) {
	source := map[string]bool{}
	for _, f := range w.Files(sourceRepo, "main") {
		source[f.SHA256] = true
	}
	for _, q := range w.Requests() {
		if q.Host == hubtest.HostCDN && q.Method == "GET" && source[path.Base(q.Path)] && q.Header.Get("User-Agent") >= userAgent(w.since) {
			n += q.Sent
		}
	}
	return n
}

// TestOtherCommitRestarts: what was converted from one commit of the source is not used for another.
func TestOtherCommitRestarts(t *testing.T) {
	t.Parallel()
	for _, sameDisk := range []bool{true, false} {
		w, work := newWorld(t, deep()), t.TempDir()
		interrupted(t, w, work, func(stop func()) {
			w.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/*", Nth: 2, Action: func(x *hubtest.Exchange) { stop(); hubtest.Error(503, "", "")(x) }})
		})
		w.log.take()
		next := hubtest.NewLlama(12, hubtest.ModelOptions{Layers: 70, Hidden: 16, Heads: 2, Vocab: 64, ShardBytes: 60_000, Extra: noPicture})
		w.Push(sourceRepo, "main", next.Files())
		if !sameDisk {
			work = t.TempDir()
		}
		if _, err := w.convert(t.Context(), t, work); err != nil {
			t.Fatal(err)
		}
		if n := len(weightFiles(w.target())); len(w.log.take()) != n {
			t.Errorf("not all %d outputs were made anew", n)
		}
		equalsFolder(t, w, localResult(t, next))
	}
}

// failingSource fails at its n-th action: opening a stream, each read of one, opening a file.
type failingSource struct {
	model.Source
	n atomic.Int64
}

var errSourceFails = errors.New("the source fails")

func (s *failingSource) fails() bool { return s.n.Add(-1) == 0 }

func (s *failingSource) Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error) {
	if s.fails() {
		return nil, errSourceFails
	}
	r, err := s.Source.Stream(ctx, file, off, end)
	return failingReader{r, s}, err
}

func (s *failingSource) OpenFile(ctx context.Context, p string) (io.ReadCloser, error) {
	if s.fails() {
		return nil, errSourceFails
	}
	r, err := s.Source.OpenFile(ctx, p)
	return failingReader{r, s}, err
}

type failingReader struct {
	io.ReadCloser
	s *failingSource
}

func (r failingReader) Read(p []byte) (int, error) {
	if r.s.fails() {
		return 0, errSourceFails
	}
	return r.ReadCloser.Read(p)
}

// TestSourceFailsAnywhere: whichever read of the source fails, its error is the one reported, nothing stays open or
// running, and the next run ends well.
func TestSourceFailsAnywhere(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	for n := int64(1); ; n += int64(stride(13)) {
		w, work := newWorld(t, small()), t.TempDir()
		w.change = append(w.change, onDisk)
		s := &failingSource{}
		s.n.Store(n)
		_, err := w.convert(t.Context(), t, work, func(o *pipeline.Options) { s.Source, o.Source = o.Source, s })
		if s.n.Load() > 0 {
			break // there is no n-th action
		}
		if !errors.Is(err, errSourceFails) {
			t.Fatalf("action %d: %v", n, err)
		}
		w.unfinished(t)
		noGoroutines(t)
		if k := openFiles(t, work); k > 0 {
			t.Fatalf("action %d: %d files are still open", n, k)
		}
		if _, err := w.convert(t.Context(), t, work); err != nil {
			t.Fatal(err)
		}
		sameFiles(t, w.target(), want)
	}
}

// TestEveryRequestRefused: whichever request is refused for good, the run ends at once with that error, which names each thing
// once, without a config.json, and the next one ends well.
func TestEveryRequestRefused(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	base := newWorld(t, small())
	base.mustConvert(t)
	for k := 1; k <= len(base.Requests()); k += stride(9) {
		w, work := newWorld(t, small()), t.TempDir()
		w.Inject(hubtest.Fault{Nth: k, Action: hubtest.Error(401, "", "Invalid credentials in Authorization header")})
		_, err := w.convert(t.Context(), t, work)
		w.ClearFaults()
		if err != nil {
			if e := (*hub.Error)(nil); !errors.As(err, &e) {
				t.Errorf("request %d: %v", k, err)
			}
			namesOnce(t, err)
			w.unfinished(t)
		}
		noGoroutines(t)
		if _, err := w.convert(t.Context(), t, work); err != nil {
			t.Fatalf("request %d, again: %v", k, err)
		}
		sameFiles(t, w.target(), want)
	}
}

// TestForeignJournal: a torn journal, or one of another plan, is not believed. Whether the files are ours it does tell, if
// it is of the same source.
func TestForeignJournal(t *testing.T) {
	want := localResult(t, small())
	const outputs = `"part": "part-1-of-1"}` + "\n" + `{"output": {"path": "lm_head.safetensors", "size": 1, "sha256": ""}}` + "\n"
	for name, tt := range map[string]struct {
		journal string
		ours    bool
	}{
		"torn":           {`{"version": 3, "plan": "`, false},
		"another":        {`{"version": 3, "plan": "0000", ` + outputs, false},
		"another's":      {`{"version": 3, "plan": "0000", "source": "org/other", ` + outputs, false},
		"another commit": {`{"version": 3, "plan": "0000", "source": "org/model", ` + outputs, true},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			writeFile(t, filepath.Join(out, ".df11-convert", "part-1-of-1.json"), []byte(tt.journal))
			writeFile(t, filepath.Join(out, "lm_head.safetensors"), []byte("x"))
			convert := func(force bool) error {
				_, err := convertLocal(t, writeModel(t, small()), out, plan.Options{}, func(o *pipeline.Options) { o.BaseModel, o.Force = "org/model", force })
				return err
			}
			if !tt.ours {
				foreign(t, convert(false), "lm_head.safetensors")
			}
			if err := convert(!tt.ours); err != nil {
				t.Fatal(err)
			}
			sameFolder(t, out, want)
		})
	}
}

// TestSpoiledOutputIsMadeAgain: an output that changed on disk after it was finished is converted again.
func TestSpoiledOutputIsMadeAgain(t *testing.T) {
	w, out := newWorld(t, small()), t.TempDir()
	w.change = append(w.change, func(o *pipeline.Options) { o.OutDir, o.Push = out, nil })
	var first string
	interrupted(t, w, out, func(stop func()) { w.log.hook = func(f string) { first = f; stop() } })
	b := readFile(t, filepath.Join(out, first))
	b[len(b)-1] ^= 1
	writeFile(t, filepath.Join(out, first), b)
	if _, err := w.convert(t.Context(), t, out); err != nil {
		t.Fatal(err)
	}
	sameFolder(t, out, localResult(t, small()))
}

// TestLocked: two runs never share a folder.
func TestLocked(t *testing.T) {
	w, out := newWorld(t, small()), t.TempDir()
	w.change = append(w.change, func(o *pipeline.Options) { o.OutDir, o.Push = out, nil })
	w.log.hook = func(string) {
		w.log.hook = nil
		if _, err := w.convert(t.Context(), t, out); err == nil || !strings.Contains(err.Error(), "locked") {
			t.Errorf("a second run in the same folder: %v", err)
		}
	}
	if _, err := w.convert(t.Context(), t, out); err != nil {
		t.Fatal(err)
	}
}

// TestSpoolsAreClosed: a run that fails while many spool files lie open closes all of them.
func TestSpoolsAreClosed(t *testing.T) {
	m := hubtest.NewLlama(31, hubtest.ModelOptions{Hidden: 256, Layers: 3, Vocab: 64, Order: hubtest.OrderScattered, ShardBytes: 1 << 20, Extra: noPicture})
	base := newWorld(t, m)
	base.mustConvert(t, onDisk)
	w, work := newWorld(t, m), t.TempDir()
	most := 0
	w.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Path: "/repos/*", Nth: base.Count("GET", "/repos/*") * 9 / 10, Action: func(x *hubtest.Exchange) {
		most = openFiles(t, work)
		hubtest.StorageError(400, "InvalidRequest", "no")(x)
	}})
	if _, err := w.convert(t.Context(), t, work, onDisk); err == nil {
		t.Fatal("the run did not fail")
	}
	if most == 0 {
		t.Error("no spool file was open when it failed")
	}
	if n := openFiles(t, work); n > 0 || most == 0 {
		t.Errorf("%d files are still open, there were %d", n, most)
	}
	noGoroutines(t)
}

// TestFinishedFolderIsNotMadeAgain: in a finished folder, a run makes only what is no longer there as it was, and the
// result is the same.
func TestFinishedFolderIsNotMadeAgain(t *testing.T) {
	log, out := new(outputLog), t.TempDir()
	dir := writeModel(t, small())
	local := func() error {
		_, err := convertLocal(t, dir, out, plan.Options{}, func(o *pipeline.Options) { o.Log = slog.New(log) })
		return err
	}
	w := newWorld(t, small())
	hubOut := t.TempDir()
	w.change = append(w.change, func(o *pipeline.Options) { o.OutDir, o.Push = hubOut, nil })
	remote := func() error {
		_, err := w.convert(t.Context(), t, hubOut)
		return err
	}
	for name, c := range map[string]struct {
		convert func() error
		log     *outputLog
		out     string
	}{"local": {local, log, out}, "hub": {remote, w.log, hubOut}} {
		t.Run(name, func(t *testing.T) {
			run := func(want ...string) {
				t.Helper()
				c.log.take()
				if err := c.convert(); err != nil {
					t.Fatal(err)
				}
				if made := c.log.take(); !slices.Equal(made, want) {
					t.Errorf("made %v, want %v", made, want)
				}
			}
			if err := c.convert(); err != nil {
				t.Fatal(err)
			}
			before := folder(t, c.out)
			run()
			if !maps.Equal(folder(t, c.out), before) {
				t.Error("a run with nothing to do has changed the folder")
			}
			const spoiled = "model_layers_0.safetensors"
			b := readFile(t, filepath.Join(c.out, spoiled))
			b[len(b)-1] ^= 1
			writeFile(t, filepath.Join(c.out, spoiled), b)
			run(spoiled)
			got := folder(t, c.out)
			for path := range got { // what was not made again is proved, not streamed
				got[path] = strings.ReplaceAll(got[path], `"integrity": "proof"`, `"integrity": "streamed"`)
			}
			if !maps.Equal(got, before) {
				t.Error("the folder is not the same")
			}
		})
	}
}
