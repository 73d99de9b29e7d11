package main

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// TestPlanGPUs: a module that stays BF16 is not decoded, so a GPU needs no room for it beside the
// stored bytes.
func TestPlanGPUs(t *testing.T) {
	unit := func(path string, nElems int64) plan.Unit {
		return plan.Unit{Path: path, Attrs: []plan.Tensor{{Shape: []int64{nElems}}}}
	}
	p := &plan.Plan{Units: []plan.Unit{unit("stays", 6e9), unit("small", 1e9)}}
	for _, c := range []struct {
		stays string
		want  string
	}{
		{"", "DF11 does not fit 24 GB, BF16 fits (weights alone, a tenth free)"},
		{"too_large", "DF11 fits 24 GB, BF16 fits (weights alone, a tenth free)"},
	} {
		f := &forecast{opened: &opened{plan: p}, size: &budget.Estimate{OutputBytes: 13e9, Units: []budget.UnitEstimate{{BF16: c.stays}, {}}}, gpu: 24e9}
		if got := f.holders(); got != c.want {
			t.Errorf("%q: %s", c.stays, got)
		}
	}
}
