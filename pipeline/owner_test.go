package pipeline_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/target"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

func forced(o *pipeline.Options) { o.Force = true }

// inFolder makes a conversion keep its result in a folder and publish nothing.
func inFolder(out string) func(*pipeline.Options) {
	return func(o *pipeline.Options) { o.OutDir, o.Push = out, nil }
}

// folder is what the files of a folder hold, by path.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	dir, err := filepath.EvalSymlinks(dir)
	shared.Must(t, err)
	err = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[p] = string(shared.Read(t, p))
		}
		return err
	})
	shared.Must(t, err)
	return files
}

// TestSourceFolderIsNoTarget: a conversion never takes the place of its source, whatever the flags,
// and leaves nothing there.
func TestSourceFolderIsNoTarget(t *testing.T) {
	t.Parallel()
	source := writeModel(t, small())
	one := filepath.Join(writeModel(t, hubtest.NewLlama(2, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1})), "model.safetensors")
	for from, out := range map[string]string{source: source, one: filepath.Dir(one)} {
		before := folder(t, out)
		_, err := convertLocal(t, from, out, plan.Options{}, forced)
		if same := (*target.SourceTargetError)(nil); !errors.As(err, &same) || !maps.Equal(folder(t, out), before) {
			t.Errorf("%s to %s: %v", from, out, err)
		}
	}
}

// TestSourceRepoIsNoTarget: the same on the Hub.
func TestSourceRepoIsNoTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small())
	head := w.Head(sourceRepo, "main")
	_, err := w.convert(t.Context(), t, t.TempDir(), forced, func(o *pipeline.Options) { o.Push.Repo = sourceRepo })
	if same := (*target.SourceTargetError)(nil); !errors.As(err, &same) {
		t.Errorf("got %v", err)
	}
	if w.Head(sourceRepo, "main") != head || w.Count("POST", anyCommit) > 0 {
		t.Error("the source was changed")
	}
}

// foreign checks that a target is refused because of a file that would be overwritten, and gives
// the error.
func foreign(t *testing.T, err error, file string) *target.ConflictError {
	t.Helper()
	f := (*target.ConflictError)(nil)
	if !errors.As(err, &f) || !slices.Contains(f.Overwritten, file) {
		t.Fatalf("got %v, want %s refused", err, file)
	}
	return f
}

// taller is small with a layer more.
func taller() *hubtest.Model {
	return hubtest.NewLlama(9, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 4, ShardBytes: 30_000, Extra: noPicture})
}

// TestAnotherModelsConversion: a finished conversion of another model is not overwritten without
// Force.
func TestAnotherModelsConversion(t *testing.T) {
	t.Parallel()
	w, out := newWorld(t, taller()), t.TempDir()
	w.mustConvert(t)
	w.mustConvert(t, inFolder(out))
	before, head := folder(t, out), w.Head(targetRepo, "main")
	w.AddModel("org/other", small())
	for _, to := range []func(*pipeline.Options){inFolder(out), func(*pipeline.Options) {}} {
		_, err := w.convertFrom(t, "org/other", to)
		if f := foreign(t, err, "lm_head.safetensors"); f.Of != sourceRepo || !strings.Contains(f.Error(), sourceRepo) {
			t.Errorf("the error does not name the model: %v", f)
		}
		if !maps.Equal(folder(t, out), before) || w.Head(targetRepo, "main") != head {
			t.Error("the target was changed")
		}
	}
	for _, to := range []func(*pipeline.Options){inFolder(out), func(*pipeline.Options) {}} {
		_, err := w.convertFrom(t, "org/other", to, forced)
		shared.Must(t, err)
	}
	want := localResult(t, small())
	sameFolder(t, out, want)
	for _, name := range []string{"lm_head.safetensors", "model_layers_2.safetensors"} {
		if content(t, w.Server, targetRepo, "main", name) != string(shared.Read(t, filepath.Join(want, name))) {
			t.Errorf("%s is not the new one", name)
		}
	}
	if c := w.Commits(targetRepo, "main"); c[0].Parent != head {
		t.Error("main did not move by one commit")
	}
}

// TestRefreshFolder: a folder takes the conversion of a new commit of the source without a flag,
// also in a second try after the first was stopped. It looks finished only at the end, and holds no
// weights of the former commit then. Another model's is refused at any time.
func TestRefreshFolder(t *testing.T) {
	t.Parallel()
	w, out := newWorld(t, taller()), t.TempDir()
	w.mustConvert(t, inFolder(out))
	recommit(w.Server, sourceRepo, small())
	w.AddModel("org/other", small())
	w.change = append(w.change, inFolder(out))
	n := 0
	_ = w.stopped(t, out, func(stop func()) {
		w.log.hook = func(string) {
			if n++; n == 2 {
				stop()
			}
		}
	})
	for _, name := range []string{"config.json", "df11-manifest.json"} {
		if _, err := os.Stat(filepath.Join(out, name)); !os.IsNotExist(err) {
			t.Errorf("the folder has %s, with weights of two commits", name)
		}
	}
	_, err := w.convertFrom(t, "org/other", inFolder(out))
	foreign(t, err, "lm_head.safetensors")
	if _, err := w.convert(t.Context(), t, out); err != nil {
		t.Fatal(err)
	}
	sameFolder(t, out, localResult(t, small()))
	for _, name := range listing(t, out) {
		if strings.HasPrefix(name, "model_layers_3.") || strings.HasPrefix(name, ".df11") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestKilledBeforeTheName: a file that is in the journal, but has not got its name yet, is made
// again.
func TestKilledBeforeTheName(t *testing.T) {
	t.Parallel()
	w, out := newWorld(t, small()), t.TempDir()
	w.change = append(w.change, inFolder(out))
	named := ""
	_ = w.stopped(t, out, func(stop func()) { w.log.hook = func(file string) { named = file; stop() } })
	remove(t, filepath.Join(out, named))
	if _, err := w.convert(t.Context(), t, out); err != nil {
		t.Fatal(err)
	}
	sameFolder(t, out, localResult(t, small()))
}

// TestResultOfAnotherProgramIsReplacedAtOnce: a target that a loader takes for a model stays one
// until the result is complete, also if no manifest lists it.
func TestResultOfAnotherProgramIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small())
	head := w.AddRepo(targetRepo, map[string][]byte{"config.json": []byte(`{"dfloat11_config": {}}`), "lm_head.safetensors": []byte("theirs")})
	w.mustConvert(t, forced)
	if c := w.Commits(targetRepo, "main"); c[0].Parent != head {
		t.Error("main did not move by one commit")
	}
}
