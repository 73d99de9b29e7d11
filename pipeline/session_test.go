package pipeline

import (
	"fmt"
	"math"
	"os/user"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// TestMemoryLimit: the collector gets a budget, no budget leaves it alone, and a budget that is
// too small is refused.
func TestMemoryLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	limitCollector(budget.Memory{})
	if l := debug.SetMemoryLimit(-1); l != math.MaxInt64 {
		t.Error(l)
	}
	f := Means{Workers: 64, Memory: 256 << 20}
	m, err := f.divide(budget.ForReading)
	defer limitCollector(m)()
	if err != nil || debug.SetMemoryLimit(-1) != 240<<20 {
		t.Error(debug.SetMemoryLimit(-1), err)
	}
	for _, memory := range []int64{1, 1 << 20, budget.LeastMemory - 1} {
		f := Means{Memory: memory}
		if _, err := f.divide(budget.ForConversion); !usage.Is(err) {
			t.Errorf("%d bytes are accepted", memory)
		}
	}
}

// TestBothSidesKeepTheBudget: the client of the target, from which outputs come back for a proof,
// has the bounds of the source's.
func TestBothSidesKeepTheBudget(t *testing.T) {
	shares := budget.ForConversion(96<<20, 2)
	for _, side := range []string{"source", "target"} {
		opt, err := new(Hubs).options(side, &Means{}, shares)
		if err != nil || opt.BufferBytes != 24<<20 || opt.RangeBytes != 1<<20 {
			t.Errorf("%s: %d bytes in ranges of %d, %v", side, opt.BufferBytes, opt.RangeBytes, err)
		}
	}
}

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
		gpu   GPUQuestion
		want  string
	}{
		{"", GPUQuestion{24, 0, 1}, "24 GB: DF11 doesn't fit, BF16 fits (at most 565,248 tokens of context) (10% kept free)"},
		{"too_large", GPUQuestion{24, 0, 1}, "24 GB: DF11 fits (at most 199,680 tokens of context), BF16 fits (at most 565,248 tokens of context) (10% kept free)"},
		{"too_large", GPUQuestion{24, 1e6, 4}, "24 GB with 4 sequences of 1,000,000 tokens of context: DF11 doesn't fit (at most 49,152 tokens of context), BF16 doesn't fit (at most 141,312 tokens of context) (10% kept free)"},
	} {
		size := &budget.Estimate{OutputBytes: 13e9, Units: []budget.UnitEstimate{{BF16: c.stays}, {}}}
		var b strings.Builder
		for _, fit := range newForecast(&opened{plan: p, model: src}, size, budget.Needs{}, c.gpu).GPUs {
			fmt.Fprintf(&b, "%s (10%% kept free)", fit)
		}
		if !strings.Contains(b.String(), c.want) {
			t.Errorf("%q: %s", c.stays, b.String())
		}
	}
}

// TestNothingOfOursLiesInASharedDirectory checks that without HOME, the program still looks for
// token, cache, and kept work in the user's own home.
func TestNothingOfOursLiesInASharedDirectory(t *testing.T) {
	me, err := user.Current()
	if err != nil || me.HomeDir == "" {
		t.Skip("the system knows no home of this user")
	}
	for _, name := range []string{"HOME", "USERPROFILE", "home", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, "")
	}
	if home := homeDir(); home != me.HomeDir {
		t.Errorf("home is %s, not %s", home, me.HomeDir)
	}
	if dir := new(Options).workDir("", strings.Repeat("0", 64)); !strings.HasPrefix(dir, me.HomeDir) {
		t.Errorf("work lies in %s", dir)
	}
}
