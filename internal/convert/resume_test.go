package convert_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

var errStop = errors.New("stopped by the test")

// stopped runs a conversion whose context ends when stop is called. It returns the run's error: the
// cause of the stop, or nil if the run was done before it noticed.
func (w *world) stopped(t *testing.T, work string, arm func(stop func())) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	arm(func() { cancel(errStop) })
	_, err := w.convert(ctx, t, work)
	if err != nil && !errors.Is(err, errStop) {
		t.Errorf("error %v, want the cause of the cancellation", err)
	}
	w.ended(t, work)
	return err
}

// ended checks that nothing of a run goes on once it has ended, and prepares the next one.
func (w *world) ended(t *testing.T, work string) {
	t.Helper()
	w.ClearFaults()
	w.log.hook = nil
	w.era++
	noGoroutines(t)
	if n := openFiles(work); n > 0 {
		t.Errorf("%d files below the work folder are still open", n)
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
	shared.Must(t, err)
	for _, e := range entries {
		if e.IsDir() || namesSource(e.Name()) {
			continue
		}
		if string(shared.Read(t, filepath.Join(got, e.Name()))) != string(shared.Read(t, filepath.Join(want, e.Name()))) {
			t.Errorf("%s differs", e.Name())
		}
	}
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

// TestFinishedFolderIsNotMadeAgain checks that in a finished folder, a run makes only outputs that
// are gone, and that the result is the same.
func TestFinishedFolderIsNotMadeAgain(t *testing.T) {
	log, out, dir := newOutputLog(), t.TempDir(), writeModel(t, small())
	convert := func() error {
		_, err := convertLocal(t, dir, out, plan.Options{}, func(o *convert.Options) { o.Log = slog.New(log) })
		return err
	}
	shared.Must(t, convert())
	before := folder(t, out)
	log.take()
	shared.Must(t, convert())
	if made := log.take(); len(made) > 0 || !maps.Equal(folder(t, out), before) {
		t.Errorf("a run with nothing to do has made %v or changed the folder", made)
	}
	const lost = "model_layers_0.safetensors"
	remove(t, filepath.Join(out, lost))
	shared.Must(t, convert())
	if made := log.take(); !slices.Equal(made, []string{lost}) {
		t.Errorf("made %v", made)
	}
	after := folder(t, out)
	for path := range after { // what was not made again is proved, not streamed
		after[path] = string(shared.AsStreamed([]byte(after[path])))
	}
	if !maps.Equal(after, before) {
		t.Error("the folder is not the same")
	}
}

// TestOutputsAreReadAsTheyWereJudged replaces an earlier run's output by a file of the same size
// during a run. The run doesn't read it: what it proves is the file that it judged.
func TestOutputsAreReadAsTheyWereJudged(t *testing.T) {
	t.Parallel()
	w, out := newWorld(t, small()), t.TempDir()
	w.change = append(w.change, inFolder(out))
	w.mustConvert(t)
	remove(t, filepath.Join(out, "lm_head.safetensors"))
	judged := filepath.Join(out, "model_layers_0.safetensors")
	w.log.hook = func(string) {
		b := shared.Read(t, judged)
		remove(t, judged)
		shared.Write(t, judged, b)
	}
	_, err := w.convert(t.Context(), t, out)
	foreign(t, err, "model_layers_0.safetensors")
}

// TestAnOutputOfTheFormerResultComesBack checks that an update fails if an output is the former
// result's again at the end. The same command then makes the result complete.
func TestAnOutputOfTheFormerResultComesBack(t *testing.T) {
	t.Parallel()
	const name = "model_layers_0.safetensors"
	want := localResult(t, retrained())
	w, out := newWorld(t, small()), t.TempDir()
	w.change = append(w.change, inFolder(out))
	w.mustConvert(t)
	file := filepath.Join(out, name)
	former := shared.Read(t, file)
	recommit(w.Server, sourceRepo, retrained())
	w.log.hook = func(made string) {
		if made == name {
			remove(t, file)
			shared.Write(t, file, former)
		}
	}
	_, err := w.convert(t.Context(), t, out)
	if err == nil || !strings.Contains(err.Error(), file+" was removed or changed") {
		t.Fatalf("error %v", err)
	}
	w.log.hook = nil
	w.mustConvert(t)
	sameFolder(t, out, want)
}

// TestMoreDiskThanBefore checks a small model whose run is stopped after its uploads, when it had so
// little disk that finished files couldn't wait there, and goes on with enough: nothing of what only
// the uploads have is lost, or fetched again.
func TestMoreDiskThanBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small())
	work := t.TempDir()
	w.change = append(w.change, func(o *convert.Options) { o.CommitWait, o.Disk = 0, 1_200_000 })
	err := w.stopped(t, work, func(stop func()) {
		w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
			stop()
			hubtest.Status(http.StatusServiceUnavailable, nil, "")(x)
		}})
	})
	if !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	w.change = append(w.change, func(o *convert.Options) { o.Disk = 0 })
	w.log.take()
	_, err = w.convert(t.Context(), t, work)
	shared.Must(t, err)
	if made := w.log.take(); len(made) > 0 {
		t.Errorf("made again: %v", made)
	}
	sameFiles(t, w.target(), reference(t, small()))
}
