package pipeline_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestTemporaryFilesOfKilledRuns: what a killed run was writing is gone when the next one begins.
func TestTemporaryFilesOfKilledRuns(t *testing.T) {
	m := hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1, Extra: noPicture})
	source := writeModel(t, m)
	for _, keep := range []bool{true, false} {
		root := t.TempDir()
		left := filepath.Join(root, ".df11-convert", ".df11-UNFINISHEDUNFINISHEDUNFINI.tmp")
		writeFile(t, left, []byte("x"))
		gone := func(string) {
			if _, err := os.Stat(left); !os.IsNotExist(err) {
				t.Errorf("keep %v: %s is still there", keep, left)
			}
		}
		w := newWorld(t, m)
		w.log.hook = gone
		if keep {
			if _, err := convertLocal(t, source, root, plan.Options{}, nil); err != nil {
				t.Fatal(err)
			}
		} else if _, err := w.convert(t.Context(), t, root); err != nil {
			t.Fatal(err)
		}
		gone("")
	}
}

// TestWorkFolderOfTheUser: a work folder that holds other things keeps them, also those that are named like a result's.
func TestWorkFolderOfTheUser(t *testing.T) {
	work := t.TempDir()
	mine := []string{"config.json", "model.safetensors", "lm_head.safetensors", "LICENSE", "notes/README.md"}
	for _, f := range mine {
		writeFile(t, filepath.Join(work, f), []byte("mine"))
	}
	w := newWorld(t, small())
	if _, err := w.convert(t.Context(), t, work, func(o *pipeline.Options) { o.WorkDir = work }); err != nil {
		t.Fatal(err)
	}
	for _, f := range mine {
		if b, err := os.ReadFile(filepath.Join(work, f)); string(b) != "mine" {
			t.Errorf("%s: %q, %v", f, b, err)
		}
	}
	if _, err := os.Stat(filepath.Join(work, ".df11-convert")); !os.IsNotExist(err) {
		t.Errorf("the run left something: %v", err)
	}
}
