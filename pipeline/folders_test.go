package pipeline_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestTemporaryFilesOfKilledRuns: what a killed run was writing is gone when the next one begins, wherever it lay.
func TestTemporaryFilesOfKilledRuns(t *testing.T) {
	m := hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1, Extra: map[string][]byte{
		"df11.png": []byte("a picture"), "chat/template.jinja": []byte("{{ x }}"),
	}})
	source := writeModel(t, m)
	for _, keep := range []bool{true, false} {
		root := t.TempDir()
		files := root
		if !keep {
			files = filepath.Join(root, ".df11-convert", "files")
		}
		var left []string
		for _, dir := range []string{files, filepath.Join(files, "chat"), filepath.Join(root, ".df11-convert")} {
			left = append(left, filepath.Join(dir, ".df11-UNFINISHED.tmp"))
			writeFile(t, left[len(left)-1], []byte("x"))
		}
		gone := func(string) {
			for _, f := range left {
				if _, err := os.Stat(f); !os.IsNotExist(err) {
					t.Errorf("keep %v: %s is still there", keep, f)
				}
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
