package publish_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// conversionOf returns a conversion with these outputs, of a commit of org/a.
func conversionOf(commit string, outputs ...string) *publish.Conversion {
	p := &plan.Plan{Config: "config.json", Layout: catalog.Transformers}
	for _, name := range outputs {
		p.OutputFiles = append(p.OutputFiles, plan.OutputFile{Path: name})
	}
	m := &model.Model{Origin: &model.Origin{Repo: "org/a", Commit: commit}}
	return publish.NewConversion(p, publish.OriginOf(m), "part", false)
}

// TestWorkFolderOfNoRun checks that a work folder whose journal isn't there holds someone's files: a
// run refuses it, and removes none. With our journal, files that it doesn't list are incomplete.
func TestWorkFolderOfNoRun(t *testing.T) {
	root := filepath.Join(t.TempDir(), "work")
	file := filepath.Join(root, ".df11-convert", "files", "head.safetensors")
	world.Write(t, file, "theirs")
	open := func() (*publish.Folder, error) {
		return publish.OpenFolder(t.Context(), root, false, conversionOf("", "head.safetensors"), 0o600)
	}
	_, err := open()
	if conflict, _ := errors.AsType[*publish.ConflictError](err); conflict == nil || !slices.Contains(conflict.Overwritten, "head.safetensors") {
		t.Fatalf("without a journal: %v", err)
	}
	holds(t, filepath.Dir(file), map[string]string{"head.safetensors": "theirs"})

	must(t, os.Remove(file))
	f, err := open()
	must(t, err)
	must(t, errors.Join(f.Save(), f.Ledger().Close(), f.Close(false)))
	world.Write(t, file, "incomplete")
	f, err = open()
	must(t, err)
	must(t, f.Clear())
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an incomplete output is left: %v", err)
	}
	must(t, f.Close(true))
}

// TestOutputFolderIsNotCleared checks that a run clears nothing from a folder that stays: what no
// journal lists there isn't a run's.
func TestOutputFolderIsNotCleared(t *testing.T) {
	root := t.TempDir()
	world.Write(t, filepath.Join(root, "README.md"), "theirs")
	f, err := publish.OpenFolder(t.Context(), root, true, conversionOf("", "head.safetensors"), 0o666)
	must(t, err)
	must(t, f.Clear())
	holds(t, root, map[string]string{"README.md": "theirs"})
	must(t, f.Close(true))
}

// TestFolderDoesNotLookFinished checks that a run takes config.json and manifest away before it writes
// over the weights of another plan, so no loader takes the folder for a model meanwhile. The result of
// the same plan keeps them.
func TestFolderDoesNotLookFinished(t *testing.T) {
	out := t.TempDir()
	must(t, convert(t, out, false, calm))
	manifest := filepath.Join(out, names.Manifest)
	const commit = "1111111111111111111111111111111111111111"
	b := bytes.Replace(world.Read(t, manifest), []byte(`"repo": "org/a"`), []byte(`"repo": "org/a", "commit": "`+commit+`"`), 1)
	world.Write(t, manifest, b)
	left := func(run *publish.Conversion) (there []string) {
		t.Helper()
		f, err := publish.OpenFolder(t.Context(), out, true, run, 0o666)
		must(t, err)
		must(t, errors.Join(f.Save(), f.Begin()))
		for _, name := range []string{"config.json", names.Manifest, "head.safetensors"} {
			if _, err := os.Stat(filepath.Join(out, name)); err == nil {
				there = append(there, name)
			}
		}
		must(t, errors.Join(f.Ledger().Close(), f.Close(true)))
		return there
	}
	if got := left(conversionOf(commit, "head.safetensors", "model.safetensors")); len(got) != 3 {
		t.Errorf("of the finished result, %q are left", got)
	}
	if got := left(conversionOf(commit, "head.safetensors", "model.safetensors", "tail.safetensors")); !slices.Equal(got, []string{"head.safetensors"}) {
		t.Errorf("of another plan's result, %q are left", got)
	}
}
