package convert_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/publish"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

func forced(o *convert.Options) { o.Force = true }

// inFolder makes a conversion keep its result in a folder and publish nothing.
func inFolder(out string) func(*convert.Options) {
	return func(o *convert.Options) { o.OutDir, o.Push = out, nil }
}

// folder is what the files of a folder hold, by their names with slashes.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name, b := range shared.ReadAll(t, dir) {
		files[name] = string(b)
	}
	return files
}

// foreign checks that a target is refused because of a file that would be overwritten. It returns
// the error.
func foreign(t *testing.T, err error, file string) *publish.ConflictError {
	t.Helper()
	f := (*publish.ConflictError)(nil)
	if !errors.As(err, &f) || !slices.Contains(f.Overwritten, file) {
		t.Fatalf("got %v, want %s refused", err, file)
	}
	return f
}

// taller is small with a layer more.
func taller() *hubtest.Model {
	return hubtest.NewLlama(9, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 4, ShardBytes: 30_000, Extra: hubtest.OwnPicture})
}

// TestResultOfAnotherProgramIsReplacedAtOnce checks that a target that a loader takes for a model
// stays a model until the result is complete, even if no manifest lists it.
func TestResultOfAnotherProgramIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small())
	head := w.AddRepo(targetRepo, map[string][]byte{"config.json": []byte(`{"dfloat11_config": {}}`), "lm_head.safetensors": []byte("theirs")})
	w.mustConvert(t, forced)
	if c := w.Commits(targetRepo, "main"); c[0].Parent != head {
		t.Error("main did not move by one commit")
	}
}

// TestFilesOfALocalSourceInARepo checks that a file in the target repo that has the bytes of a
// local source's file stays and isn't ours, and that a run refuses another file of that name.
func TestFilesOfALocalSourceInARepo(t *testing.T) {
	t.Parallel()
	const name = "tokenizer.json"
	dir := writeModel(t, small())
	theirs := shared.Read(t, filepath.Join(dir, name))
	w := newWorld(t, nil)
	w.AddRepo(targetRepo, map[string][]byte{name: append(theirs, '\n')})
	foreign(t, w.pushLocal(t, dir), name)
	w.Push(targetRepo, "main", map[string][]byte{name: theirs})
	shared.Must(t, w.pushLocal(t, dir))
	isKept := func(f metadata.OutputFile) bool { return f.Path == name && f.Kept }
	if !slices.ContainsFunc(w.manifest(t).Outputs, isKept) {
		t.Error("the run calls the user's file its own")
	}
}
