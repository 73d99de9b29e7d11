package convert_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestOptionsThatLackSomething checks that a conversion of nothing, or to nowhere, is refused.
func TestOptionsThatLackSomething(t *testing.T) {
	t.Parallel()
	source, known, p := openLocal(t, writeModel(t, small()), plan.Options{})
	for name, opt := range map[string]convert.Options{
		"nothing":   {},
		"no source": {Model: known, Plan: p, OutDir: t.TempDir()},
		"no model":  {Source: source, Plan: p, OutDir: t.TempDir()},
		"no plan":   {Source: source, Model: known, OutDir: t.TempDir()},
		"zero plan": {Source: source, Model: known, Plan: &plan.Plan{}, OutDir: t.TempDir()},
		"no target": {Source: source, Model: known, Plan: p},
	} {
		if r, err := converted(t.Context(), opt); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	_, err := converted(t.Context(), convert.Options{Source: source, Model: known, Plan: p, OutDir: t.TempDir()})
	shared.Must(t, err)
}
