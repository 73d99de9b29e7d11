package pipeline_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/pipeline"
)

// move moves a file inside a folder.
func move(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyWhatIsLoaded: the official loader reads the weight files beside config.json and none below, and takes nothing for
// compressed without dfloat11_config. So what lies elsewhere is not part of the model, and verify says so at every level.
func TestOnlyWhatIsLoaded(t *testing.T) {
	source := writeModel(t, formModel())
	good := t.TempDir()
	if _, err := convertLocal(t, source, good, plan.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(dir string){
		"a unit in a folder":        func(dir string) { move(t, dir, "lm_head.safetensors", "sub/lm_head.safetensors") },
		"the remainder in a folder": func(dir string) { move(t, dir, "model.safetensors", "sub/model.safetensors") },
		"no config":                 func(dir string) { move(t, dir, "config.json", "was-config.json") },
		"config in a folder":        func(dir string) { move(t, dir, "config.json", "sub/config.json") },
		"config with a unit, in a folder": func(dir string) {
			move(t, dir, "config.json", "sub/config.json")
			move(t, dir, "lm_head.safetensors", "sub/lm_head.safetensors")
		},
		"no config, a unit in a folder": func(dir string) {
			move(t, dir, "config.json", "x")
			move(t, dir, "lm_head.safetensors", "sub/lm_head.safetensors")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad := folderWith(t, good, "df11-manifest.json", nil)
			change(bad)
			for _, level := range []pipeline.Level{pipeline.LevelStructure, pipeline.LevelProof, pipeline.LevelFull} {
				_, err := verifyAs(t, bad, source, level, plan.Options{})
				if wrong := (*pipeline.WrongError)(nil); !errors.As(err, &wrong) {
					t.Errorf("%s: %v", level, err)
				}
			}
		})
	}
}

// TestModelInAFolder: in a pipeline that others made, the folder with dfloat11_config is the model; the components beside it
// are not.
func TestModelInAFolder(t *testing.T) {
	source := writeModel(t, formModel())
	good, whole := t.TempDir(), t.TempDir()
	if _, err := convertLocal(t, source, good, plan.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(good, "df11-manifest.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(whole, "transformer"), os.DirFS(good)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(whole, "vae"), os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	if r, err := verifyAs(t, whole, source, pipeline.LevelFull, plan.Options{}); err != nil || r.Units == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.CopyFS(filepath.Join(whole, "transformer_2"), os.DirFS(good)); err != nil {
		t.Fatal(err)
	}
	if _, err := pipeline.OpenDF11Folder(whole); err == nil {
		t.Error("of two models in folders, one was chosen")
	}
}
