package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestNoOneNamesTheOriginal checks that verify claims no more than it has compared if no one names the
// original: with the manifest, not with an original.
func TestNoOneNamesTheOriginal(t *testing.T) {
	g := newForger(t)
	made := g.convert(filepath.Join(g.local, llamaModel))
	delete(made, names.Card)
	for _, x := range []struct {
		name  string
		forge func(f *forged)
		exit  int
		says  string
	}{
		{"honest", func(*forged) {}, exitOK, "shows no fault (level structure)\n"},
		{"a file less", removes("tokenizer.json"), exitFiles, "1 other file differs from the manifest: tokenizer.json (missing)"},
		{"a changed file", sets("tokenizer.json", "{}"), exitFiles, "1 other file differs from the manifest: tokenizer.json\n"},
		{"the same size", edits("tokenizer.json", "{", "["), exitFiles, "1 other file differs from the manifest: tokenizer.json\n"},
		{"a file more", sets("x.py", ""), exitFiles, "1 other file differs from the manifest: x.py (added)"},
		{"two names", sets("Config.JSON", "{}"), exitWrong, "can't both exist on a case-insensitive file system"},
		{"a weight file more", func(f *forged) {
			f.files["x.safetensors"] = world.Safetensors([]world.Tensor{{Name: "x", DType: "U8", Shape: []int64{1}, Data: []byte{1}}})
		},
			exitWrong, "x.safetensors: the manifest doesn't list it, but a loader reads it"},
		{"a card as long as no card", sets(names.Card, string(make([]byte, 9<<20))), exitOK, "shows no fault"},
	} {
		t.Run(x.name, func(t *testing.T) {
			g.models["local"] = made
			f := g.forge("local", false, x.forge)
			ends(t, x.exit, x.says, "verify", f.folder(), "--level", "structure", "--strict-files")
			if x.exit != exitWrong {
				must(t, "decode", f.folder(), "-o", filepath.Join(t.TempDir(), "back"))
				must(t, "inspect", f.folder())
			}
		})
	}
}

// TestManifestInsteadOfOriginal checks that verify compares everything with the manifest if no one
// names the original: it finds the file with a flipped bit, and original files that the model doesn't
// restore. It ends with 1 even if nothing is wrong, because it has compared no original.
func TestManifestInsteadOfOriginal(t *testing.T) {
	g := newForger(t)
	g.models["local"] = g.convert(filepath.Join(g.local, llamaModel))
	const is = " what the manifest says; no original was compared"
	for _, x := range []struct {
		name  string
		forge func(f *forged)
		exit  int
		says  string
	}{
		{"honest", func(*forged) {}, exitError, "m is" + is + "\n"},
		{"a flipped bit", rot, exitWrong, "is damaged: model_layers_1.safetensors: sha256 is "},
		{"a flipped bit that the manifest lists", func(f *forged) { rot(f); f.relist() }, exitWrong,
			"is damaged: rebuild model.safetensors: the file has sha256 "},
		{"another file", edits("tokenizer.json", "{", "["), exitError,
			"the weights of DIR are" + is + "; 1 other file differs from the manifest: tokenizer.json\n"},
		{"a tensor left out", says(func(m *metadata.Manifest) { m.Dropped = []string{"x"} }), exitError,
			"can't be rebuilt: its tensor x was left out, 1 in all, by the manifest"},
		{"no manifest", removes(names.Manifest), exitError, "shows no fault (level structure)\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			at := g.forge("local", false, x.forge).folder()
			for _, level := range []string{"-q=false", "--level=proof", "--level=full"} {
				ends(t, x.exit, strings.ReplaceAll(x.says, "DIR", at), "verify", at, level)
			}
			_, _, diag := program(t, "verify", at)
			if named := strings.Contains(diag, "doesn't name its original"); named != (x.exit == exitError) {
				t.Error(diag)
			}
		})
	}
}

// TestTheOriginalIsOutOfReach checks that verify compares a model with its manifest if the original that
// it names isn't in the cache and the network is off, and says that it has compared no original. An
// original that the user names must be there.
func TestTheOriginalIsOutOfReach(t *testing.T) {
	g := newForger(t)
	g.models["remote"] = g.convert(llamaModel)
	honest, rotten := g.forge("remote", false, func(*forged) {}).folder(), g.forge("remote", false, rot).folder()
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	t.Setenv("HF_HUB_OFFLINE", "1")
	const out = "nothing was compared with its original, " + llamaModel
	ends(t, exitError, honest+" is what the manifest says; no original was compared\n", "verify", honest)
	ends(t, exitError, out, "verify", honest)
	ends(t, exitWrong, "is damaged: model_layers_1.safetensors: sha256 is ", "verify", rotten)
	ends(t, exitOK, out, "verify", honest, "--level", "structure")
	code, stdout, diag := program(t, "verify", honest, "--against", llamaModel)
	if code != exitError || stdout != "" || !strings.Contains(diag, "offline mode is on") {
		t.Errorf("exit %d: %s%s", code, stdout, diag)
	}
}
