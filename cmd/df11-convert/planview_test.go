package main

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// TestPlanGPUs: a module that stays BF16 is not decoded, so a GPU needs no space for it next to the
// stored bytes.
func TestPlanGPUs(t *testing.T) {
	unit := func(path string, nElems int64) plan.Unit {
		return plan.Unit{Path: path, Attrs: []plan.Tensor{{Shape: []int64{nElems}}}}
	}
	config := []byte(`{"num_hidden_layers": 10, "num_attention_heads": 16, "head_dim": 64}`)
	src := &model.Model{Listing: plan.Source{Config: config}}
	p := &plan.Plan{Units: []plan.Unit{unit("stays", 6e9), unit("small", 1e9)}}
	for _, c := range []struct {
		stays string
		gpu   gpuQuestion
		want  string
	}{
		{"", gpuQuestion{24, 0, 1}, "24 GB: DF11 doesn't fit, BF16 fits with up to 565,248 tokens of context (10% kept free)"},
		{"too_large", gpuQuestion{24, 0, 1}, "24 GB: DF11 fits with up to 199,680 tokens of context, BF16 fits with up to 565,248 tokens of context (10% kept free)"},
		{"too_large", gpuQuestion{24, 1e6, 4}, "24 GB: DF11 doesn't fit: at most 49,152 tokens of context × 4, BF16 doesn't fit: at most 141,312 tokens of context × 4 (10% kept free)"},
	} {
		f := &forecast{opened: &opened{plan: p, model: src}, size: &budget.Estimate{OutputBytes: 13e9, Units: []budget.UnitEstimate{{BF16: c.stays}, {}}}, gpu: c.gpu}
		if got := f.holders(); got != c.want {
			t.Errorf("%q: %s", c.stays, got)
		}
	}
}
