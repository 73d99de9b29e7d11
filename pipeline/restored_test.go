package pipeline_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestMistakesAboutADF11Source checks that a mistake of the user's isn't blamed on the DF11 model that
// is the source: neither the error nor the hint mentions it.
func TestMistakesAboutADF11Source(t *testing.T) {
	dir := t.TempDir()
	source, out := filepath.Join(dir, "model"), filepath.Join(dir, "out")
	world.Must(t, hubtest.NewQwen3(1, hubtest.ModelOptions{}).Write(source))
	_, err := pipeline.Convert(t.Context(), source, pipeline.Options{Folder: out})
	world.Must(t, err)
	for name, recipe := range map[string]pipeline.Recipe{
		"component": {Component: "nope"},
		"file":      {File: "nope.safetensors"},
		"entry":     {Like: "nope"},
		"reader":    {For: "nope"},
	} {
		recipe.Layout = "transformers-single"
		_, err := pipeline.Convert(t.Context(), out, pipeline.Options{Recipe: recipe, Folder: filepath.Join(dir, "one")})
		var e *pipeline.Error
		if !errors.Is(err, pipeline.ErrUsage) || !errors.As(err, &e) || strings.Contains(e.Error(), "manifest") || strings.Contains(e.Hint, "verify") {
			t.Errorf("%s: %v\nhint: %s", name, err, e.Hint)
		}
	}
}
