package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestOriginalsBroughtAlong checks that a model in a folder of the DF11 model never counts as its
// original, whatever its name: org/name and addresses mean the Hub, and verify refuses a path into
// the model, by whatever links.
func TestOriginalsBroughtAlong(t *testing.T) {
	g := newForger(t)
	model := filepath.Join(t.TempDir(), "d")
	evil := g.models["of "+evilModel]
	world.WriteAll(t, model, g.models[evilModel])
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	world.WriteAll(t, elsewhere, evil)
	for _, dir := range []string{llamaModel, llamaModel + "@main", "sub", "a/b/c", ".cache/huggingface/x/y", "https:/huggingface.co/" + llamaModel, "hf:/" + llamaModel} {
		world.WriteAll(t, filepath.Join(model, filepath.FromSlash(dir)), evil)
	}
	world.Must(t, os.Symlink(elsewhere, filepath.Join(model, ".cache", "huggingface", "out")))
	link := filepath.Join(t.TempDir(), "in")
	world.Must(t, os.Symlink(filepath.Join(model, "sub"), link))
	t.Chdir(model)
	for _, x := range []struct {
		against string
		exit    int
		said    string
	}{
		{llamaModel, exitWrong, "differs from " + llamaModel},
		{llamaModel + "@main", exitWrong, "differs from " + llamaModel},
		{"hf://" + llamaModel, exitWrong, "differs from " + llamaModel},
		{g.URL + "/" + llamaModel, exitWrong, "differs from " + llamaModel},
		{"a/b", exitError, "no such repo"},
		{"./" + llamaModel, exitUsage, "in . itself"},
		{filepath.Join(model, "sub"), exitUsage, "in . itself"},
		{"../d/sub", exitUsage, "in . itself"},
		{"sub", exitUsage, "in . itself"},
		{".cache/huggingface/out", exitUsage, "in . itself"},
		{"a/b/c", exitUsage, "in . itself"},
		{"./.cache/huggingface/x/y", exitUsage, "in . itself"},
		{"sub/model.safetensors", exitUsage, "in . itself"},
		{".", exitUsage, "in . itself"},
		{link, exitUsage, "in . itself"},
		{elsewhere, exitOK, "against elsewhere (level full): weights equal"},
	} {
		ends(t, x.exit, x.said, "verify", ".", "--against", x.against)
		if x.exit != exitUsage {
			x.said = "" // decode has other words
		}
		ends(t, x.exit, x.said, "decode", ".", "-o", t.TempDir(), "--against", x.against)
	}
}
