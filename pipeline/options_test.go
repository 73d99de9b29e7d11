package pipeline_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestOptionsThatLackSomething checks that a conversion of nothing, or to nowhere, is refused.
func TestOptionsThatLackSomething(t *testing.T) {
	t.Parallel()
	source, known, p := openLocal(t, writeModel(t, small()), plan.Options{})
	for name, opt := range map[string]pipeline.Options{
		"nothing":   {},
		"no source": {Model: known, Plan: p, OutDir: t.TempDir()},
		"no model":  {Source: source, Plan: p, OutDir: t.TempDir()},
		"no plan":   {Source: source, Model: known, OutDir: t.TempDir()},
		"zero plan": {Source: source, Model: known, Plan: &plan.Plan{}, OutDir: t.TempDir()},
		"no target": {Source: source, Model: known, Plan: p},
	} {
		if r, err := pipeline.Run(t.Context(), opt); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	_, err := pipeline.Run(t.Context(), pipeline.Options{Source: source, Model: known, Plan: p, OutDir: t.TempDir()})
	shared.Must(t, err)
}
