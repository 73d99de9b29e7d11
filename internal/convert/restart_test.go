package convert_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// rangedWorld is a hub that is asked for small ranges.
func rangedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, small())
	w.hub = append(w.hub, func(o *hub.Options) { o.RangeBytes, o.BufferBytes = 4<<10, 8<<10 })
	return w
}

const secondFile = "model-00002-of-00004.safetensors"

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
	if _, err := w.convert(t.Context(), t, t.TempDir(), func(o *convert.Options) { o.Finish = true }); err != nil {
		t.Fatal(err)
	}
	if made := w.log.take(); len(made) < 2 || len(made) >= len(weightFiles(want)) {
		t.Errorf("the finish made %v", made)
	}
	sameFiles(t, w.target(), want)
}
