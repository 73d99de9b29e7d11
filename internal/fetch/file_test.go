package fetch

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// TestNoFileIsDoneBeforeItsOutputs: a journal that lacks an output of a source file does not say that nothing of the file is left to
// do, whatever this run knows of it.
func TestNoFileIsDoneBeforeItsOutputs(t *testing.T) {
	o := &spans.Output{Path: "o"}
	f := &File{Path: "f", Size: 10, Segments: []spans.Segment{{Off: 2, End: 10, To: []spans.Delivery{{Output: o}}}}}
	proved, streamed := ledger.New("", "", false), ledger.New("", "", false)
	if err := proved.AddCheckpoint(ledger.Checkpoint{File: "f", Integrity: metadata.Proof, SHA256: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := f.finish("y"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		l         *ledger.Ledger
		listed    bool
		integrity metadata.Integrity
	}{{proved, false, ""}, {proved, true, metadata.Proof}, {streamed, false, ""}, {streamed, true, metadata.Streamed}} {
		if got := f.Checkpoint(c.l, func(string) bool { return c.listed }); got.Integrity != c.integrity || got.File != "f" {
			t.Errorf("%+v, want %q", got, c.integrity)
		}
	}
}
