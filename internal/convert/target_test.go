package convert_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/model"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestModelInAFolder checks that in a pipeline that others made, only the folder with
// dfloat11_config is the model, not the components next to it.
func TestModelInAFolder(t *testing.T) {
	source, good, whole := writeModel(t, formModel()), localResult(t, formModel()), t.TempDir()
	shared.Must(t, os.Remove(filepath.Join(good, "df11-manifest.json")))
	shared.Must(t, os.CopyFS(filepath.Join(whole, "transformer"), os.DirFS(good)))
	shared.Must(t, os.CopyFS(filepath.Join(whole, "vae"), os.DirFS(source)))
	if r, err := verifyLocal(t, whole, source, convert.LevelFull); err != nil || r.Units == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	shared.Must(t, os.CopyFS(filepath.Join(whole, "transformer_2"), os.DirFS(good)))
	if _, err := model.OpenDF11Local(t.Context(), whole, 0); err == nil {
		t.Error("of two models in folders, one was chosen")
	}
}

// TestGitignoreLeavesNothingOut checks that a target's .gitignore, which the Hub applies when it's
// asked how to upload a file, stays and keeps out no file of the result.
func TestGitignoreLeavesNothingOut(t *testing.T) {
	want := reference(t, small())
	w := newWorld(t, small())
	w.AddRepo(targetRepo, map[string][]byte{".gitignore": []byte("*\n")})
	want[".gitignore"] = w.Files(targetRepo, "main")[".gitignore"]
	w.mustConvert(t)
	sameFiles(t, w.target(), want)
}
