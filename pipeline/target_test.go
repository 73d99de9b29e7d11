package pipeline_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// move moves a file inside a folder.
func move(t *testing.T, dir, from, to string) {
	t.Helper()
	shared.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o777))
	shared.Must(t, os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)))
}

// TestOnlyWhatIsLoaded: the official loader reads the weight files next to config.json and none
// below, and takes nothing for compressed without dfloat11_config. So what lies elsewhere is not
// part of the model, and verify says so at every level.
func TestOnlyWhatIsLoaded(t *testing.T) {
	source, good := writeModel(t, formModel()), localResult(t, formModel())
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
				if other := (*back.DifferentError)(nil); !back.IsFault(err) && !errors.As(err, &other) {
					t.Errorf("%s: %v", level, err)
				}
			}
		})
	}
}

// TestModelInAFolder: in a pipeline that others made, the folder with dfloat11_config is the model;
// the components next to it are not.
func TestModelInAFolder(t *testing.T) {
	source, good, whole := writeModel(t, formModel()), localResult(t, formModel()), t.TempDir()
	shared.Must(t, os.Remove(filepath.Join(good, "df11-manifest.json")))
	shared.Must(t, os.CopyFS(filepath.Join(whole, "transformer"), os.DirFS(good)))
	shared.Must(t, os.CopyFS(filepath.Join(whole, "vae"), os.DirFS(source)))
	if r, err := verifyAs(t, whole, source, pipeline.LevelFull, plan.Options{}); err != nil || r.Units == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	shared.Must(t, os.CopyFS(filepath.Join(whole, "transformer_2"), os.DirFS(good)))
	if _, err := model.OpenDF11Local(t.Context(), whole, 0); err == nil {
		t.Error("of two models in folders, one was chosen")
	}
}

// TestConfigLies: a config.json with another dict than the units were encoded by loads wrongly,
// whatever dict the check is asked to use; verify and inspect say so.
func TestConfigLies(t *testing.T) {
	source, good := writeModel(t, formModel()), localResult(t, formModel())
	d, err := model.OpenDF11Local(t.Context(), good, 0)
	shared.Must(t, err)
	defer d.Close()
	config := string(shared.Read(t, filepath.Join(good, "config.json")))
	for name, to := range map[string]string{"another order": `"mlp.up_proj", "mlp.gate_proj"`, "one missing": `"mlp.gate_proj"`} {
		bad := folderWith(t, good, "config.json", []byte(listOf(`mlp.gate_proj`, `mlp.up_proj`).ReplaceAllString(config, to)))
		lying, err := model.OpenDF11Local(t.Context(), bad, 0)
		shared.Must(t, err)
		defer lying.Close()
		if lying.Dict.Equal(d.Dict) {
			t.Fatal("the config was not changed")
		}
		opt := plan.Options{PatternDict: d.Dict}
		src, known, p := openLocal(t, source, opt)
		_, err = pipeline.Verify(t.Context(), pipeline.PairOptions{Pair: back.Pair{DF11: lying, Source: src, Model: known, Plan: p}, Level: pipeline.LevelFull, WorkDir: t.TempDir()})
		if other := (*back.DifferentError)(nil); !back.IsFault(err) && !errors.As(err, &other) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := folderWith(t, good, "config.json", []byte(strings.Replace(config, `"lm_head"`, `"lm_tail"`, 1)))
	lying, err := model.OpenDF11Local(t.Context(), bad, 0)
	shared.Must(t, err)
	defer lying.Close()
	if r, err := describe.DF11(t.Context(), lying); err != nil || len(r.Traps) != 2 {
		t.Errorf("inspect: %v, %v", r.Traps, err)
	}
	if r, err := describe.DF11(t.Context(), d); err != nil || len(r.Traps) != 0 {
		t.Errorf("inspect of a good one: %v, %v", r.Traps, err)
	}
}

// listOf matches strings of a JSON list, one after the other.
func listOf(a, b string) *regexp.Regexp {
	return regexp.MustCompile(`"` + regexp.QuoteMeta(a) + `",\s*"` + regexp.QuoteMeta(b) + `"`)
}

// TestGitignoreLeavesNothingOut: a .gitignore of the target, which the Hub matches when it is asked
// how to upload a file, keeps no file of the result away, and stays.
func TestGitignoreLeavesNothingOut(t *testing.T) {
	want := reference(t, small())
	w := newWorld(t, small())
	w.AddRepo(targetRepo, map[string][]byte{".gitignore": []byte("*\n")})
	want[".gitignore"] = w.Files(targetRepo, "main")[".gitignore"]
	w.mustConvert(t)
	sameFiles(t, w.target(), want)
}
