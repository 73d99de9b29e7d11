package pipeline_test

import (
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestNewerJournal: a journal of a newer program ends the run with an error that says what can be
// done, in a folder and in a repo. Neither is changed.
func TestNewerJournal(t *testing.T) {
	refused := func(err error) {
		t.Helper()
		if e := (*ledger.VersionError)(nil); !errors.As(err, &e) || e.Version != 2 || !strings.Contains(e.Hint(), "newer") {
			t.Errorf("got %v", err)
		}
	}
	newer := []byte(`{"version":2,"plan":"0","source":"` + sourceRepo + `"}` + "\n" + `{"news":1}` + "\n")
	w, out := newWorld(t, small()), t.TempDir()
	shared.Write(t, filepath.Join(out, journalFile), newer)
	shared.Write(t, filepath.Join(out, ".df11-convert", "spool-0123456789abcdef.data"), []byte("kept"))
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

// TestOnlyOutputsOfThePlanAreFinished: a manifest in which an output has the units of another
// is not believed.
func TestOnlyOutputsOfThePlanAreFinished(t *testing.T) {
	source, out := writeModel(t, small()), localResult(t, small())
	name := filepath.Join(out, names.Manifest)
	manifest, err := metadata.ParseManifest(shared.Read(t, name), 0)
	shared.Must(t, err)
	manifest.Units[0].File = manifest.Units[1].File
	b, err := manifest.Marshal()
	shared.Must(t, err)
	shared.Write(t, name, b)
	_, err = convertLocal(t, source, out, plan.Options{}, nil)
	shared.Must(t, err)
	sameFolder(t, out, localResult(t, small()))
}
