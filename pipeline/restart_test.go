package pipeline_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// changingWorld is a hub whose links serve once, so that every range is preceded by a look at the
// file's etag.
func changingWorld(t *testing.T) *world {
	t.Helper()
	return rangedWorld(t, hubtest.WithLinksForOnce())
}

// rangedWorld is a hub that is asked for small ranges.
func rangedWorld(t *testing.T, opts ...hubtest.Option) *world {
	t.Helper()
	w := newWorld(t, small(), opts...)
	w.hub = append(w.hub, func(o *hub.Options) { o.RangeBytes, o.BufferBytes = 4<<10, 8<<10 })
	return w
}

// changes makes the hub name another etag for a file, from the n-th look on, so many times.
func changes(w *world, file string, n, times int) {
	w.Inject(hubtest.Fault{Name: "etag-changed", Method: "HEAD", Path: "*/resolve/*/" + file, Nth: n, Times: times})
}

const secondFile = "model-00002-of-00004.safetensors"

// looksForHeaders counts how often the second file is looked at before any weight moves: headers
// are read by ranges too.
func looksForHeaders(t *testing.T) int {
	t.Helper()
	w := changingWorld(t)
	if _, _, err := model.OpenHub(t.Context(), w.client(t), sourceRepo, "", plan.Options{}); err != nil {
		t.Fatal(err)
	}
	return w.Count("HEAD", "*/resolve/*/"+secondFile)
}

// TestChangedFileIsReadAgain checks that if the hub's etag of a file changes in the middle, what
// was read of that file is discarded and read again, little else is read twice, and the bytes are
// the same. The same holds for tensors in ranges, which no hash covers.
func TestChangedFileIsReadAgain(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	base := changingWorld(t)
	base.mustConvert(t)
	first, last := looksForHeaders(t)+1, base.Count("HEAD", "*/resolve/*/"+secondFile)
	if last < first+4 {
		t.Fatalf("only looks %d to %d are at weights", first, last)
	}
	for n := first; n <= last; n += shared.Stride(2) {
		for name, runs := range map[string][]func(*pipeline.Options){"whole": {func(*pipeline.Options) {}}, "part": {inPart, finishing}} {
			w := changingWorld(t)
			changes(w, secondFile, n, 1)
			for _, change := range runs {
				w.mustConvert(t, change)
			}
			if w.FaultsActed("etag-changed") != 1 {
				t.Fatalf("%s, look %d: the fault did not act", name, n)
			}
			sameFiles(t, w.target(), want)
			if read, once := w.sourceBytes(), base.sourceBytes(); len(runs) == 1 && read > 2*once {
				t.Errorf("look %d: %d bytes were read, an undisturbed run reads %d", n, read, once)
			}
			checkPublished(t, w)
			noGoroutines(t)
		}
	}
}

// TestProofHealsAPart checks that the finishing run finds a bit that flipped on its way into a
// part, which no hash covers, and makes the outputs of that file again.
func TestProofHealsAPart(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	base := rangedWorld(t)
	if _, err := base.convert(t.Context(), t, t.TempDir(), inPart); err != nil {
		t.Fatal(err)
	}
	w := rangedWorld(t)
	// weights: headers are read first
	w.Inject(hubtest.Fault{Name: "corrupt", Nth: base.Count("GET", "/repos/*") - 5})
	if _, err := w.convert(t.Context(), t, t.TempDir(), inPart); err != nil || w.FaultsActed("corrupt") == 0 {
		t.Fatal(w.FaultsActed("corrupt"), err)
	}
	w.log.take()
	if _, err := w.convert(t.Context(), t, t.TempDir(), func(o *pipeline.Options) { o.Finish = true }); err != nil {
		t.Fatal(err)
	}
	if made := w.log.take(); len(made) < 2 || len(made) >= len(weightFiles(want)) {
		t.Errorf("the finish made %v", made)
	}
	sameFiles(t, w.target(), want)
}
