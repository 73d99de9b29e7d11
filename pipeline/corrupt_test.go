package pipeline_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/pipeline"
)

// corrupted makes one bit wrong in the answer to the n-th read of weights.
func (w *world) corrupted(n int) {
	w.Inject(hubtest.Fault{Name: "corrupt", Nth: n})
}

// noted makes every spool a file that is noted often and synced rarely, so that spools hold more than a checkpoint counts
// on.
func noted(o *pipeline.Options) { o.SpoolMemory, o.SpoolSync = -1, 3<<20 }

// TestCorruptThenKilled: a byte that was wrong before a kill is in no output, wherever it lies: the next run reads on
// from the checkpoint, behind which the spools that it takes up hold more.
func TestCorruptThenKilled(t *testing.T) {
	want := reference(t, mediumHead())
	for n := 200; n < 340; n += stride(28) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, mediumHead())
			w.corrupted(n)
			work := w.killed(t, 340, noted)
			if _, err := w.convert(t.Context(), t, work, noted); err != nil {
				t.Fatal(err)
			}
			sameFiles(t, w.target(), want)
			checkPublished(t, w)
		})
	}
}

// TestCorruptCompleteSpool: the same for a unit that was complete and is not read again, where the kill came before a
// checkpoint was written.
func TestCorruptCompleteSpool(t *testing.T) {
	want := reference(t, mediumHead())
	w, work := newWorld(t, mediumHead()), t.TempDir()
	w.corrupted(60)
	_, err := w.convert(t.Context(), t, work, onDisk, func(o *pipeline.Options) { o.GPU = brokenGPU{} })
	if !errors.Is(err, errStop) || w.FaultsActed("corrupt") == 0 {
		t.Fatal(err)
	}
	w.ClearFaults()
	remove(t, filepath.Join(work, ".df11-convert", "part-1-of-1.json"))
	if _, err := w.convert(t.Context(), t, work, onDisk); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, w.target(), want)
	checkPublished(t, w)
}

// TestRangesThenStreamed: what was made of ranges is proved, and not called streamed because a later run streams the rest.
func TestRangesThenStreamed(t *testing.T) {
	want := reference(t, mediumHead())
	for corrupt, integrity := range map[bool]metadata.Integrity{false: metadata.Proof, true: metadata.Streamed} {
		w, work := newWorld(t, mediumHead()), t.TempDir()
		if corrupt {
			w.corrupted(200)
		}
		if _, err := w.convert(t.Context(), t, work, onDisk, inPart); err != nil {
			t.Fatal(err)
		}
		if corrupt && w.FaultsActed("corrupt") == 0 {
			t.Error("no byte was wrong")
		}
		w.ClearFaults()
		if _, err := w.convert(t.Context(), t, work, onDisk); err != nil {
			t.Fatal(err)
		}
		sameWeights(t, w, want)
		for _, f := range w.manifest(t).Source.Files {
			if f.Integrity != integrity {
				t.Errorf("%s: %s, want %s", f.Path, f.Integrity, integrity)
			}
		}
	}
}
