package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
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
		{"", gpuQuestion{24, 0, 1}, "24 GB: DF11 doesn't fit, BF16 fits (at most 565,248 tokens of context) (10% kept free)"},
		{"too_large", gpuQuestion{24, 0, 1}, "24 GB: DF11 fits (at most 199,680 tokens of context), BF16 fits (at most 565,248 tokens of context) (10% kept free)"},
		{"too_large", gpuQuestion{24, 1e6, 4}, "24 GB: DF11 doesn't fit (at most 49,152 tokens of context), BF16 doesn't fit (at most 141,312 tokens of context) (10% kept free)"},
	} {
		size := &budget.Estimate{OutputBytes: 13e9, Units: []budget.UnitEstimate{{BF16: c.stays}, {}}}
		var b strings.Builder
		newForecast(&opened{plan: p, model: src}, size, budget.Needs{}, c.gpu).print(&b)
		if !strings.Contains(b.String(), c.want) {
			t.Errorf("%q: %s", c.stays, b.String())
		}
	}
}

// TestPlannedDict checks that --pattern-dict takes the pattern dict of plan --json as it is.
func TestPlannedDict(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "dict.json")
	llama(t, dir, "BF16", 0, "")
	var docs [2]struct {
		Dict  json.RawMessage `json:"pattern_dict"`
		Units []plannedUnit
	}
	world.Must(t, json.Unmarshal([]byte(must(t, "plan", dir, "--json")), &docs[0]))
	world.Write(t, file, docs[0].Dict)
	world.Must(t, json.Unmarshal([]byte(must(t, "plan", dir, "--json", "--pattern-dict", file)), &docs[1]))
	if len(docs[0].Units) == 0 || !reflect.DeepEqual(docs[0], docs[1]) {
		t.Errorf("%s, and then %s", docs[0].Dict, docs[1].Dict)
	}
}
