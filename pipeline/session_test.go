package pipeline

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os/user"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/hubtest"
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
// has the bounds of the source's, and each call has its own, although they share their Hubs. What a call
// waits for is reported to that call.
func TestBothSidesKeepTheBudget(t *testing.T) {
	server := hubtest.Start(t)
	const size = 3 << 20
	commit := server.AddRepo("org/model", map[string][]byte{"model.safetensors": make([]byte, size)})
	hubs := &Hubs{Options: &hub.Options{Connection: hub.Connection{Endpoint: server.URL, Clock: hubtest.NewJumpClock(time.Now())}}}
	for i, call := range []struct{ memory, rangeBytes, bufferBytes int64 }{{8 << 30, 8 << 20, 192 << 20}, {96 << 20, 1 << 20, 24 << 20}} {
		waits := 0
		s := &session{Means: Means{Hubs: hubs, Version: fmt.Sprint(i), Notice: func(string) { waits++ }}, shares: budget.ForConversion(call.memory, 2)}
		if c := s.call(s.shares); c.BufferBytes != call.bufferBytes || c.RangeBytes != call.rangeBytes {
			t.Errorf("call %d: %d bytes in ranges of %d", i, c.BufferBytes, c.RangeBytes)
		}
		for n, side := range []string{"source", "target"} {
			server.Inject(hubtest.Fault{Name: "limited", Path: "/api/models/*", Action: hubtest.Status(429, hubtest.Header{"Retry-After": "60"}, "")})
			before := len(server.Requests())
			c, err := s.client(side)
			if again, _ := s.client(side); err != nil || again != c {
				t.Fatal("a call has two clients of a side", err)
			}
			if _, err := c.Head(t.Context(), "org/model", "main"); err != nil {
				t.Error(err)
			}
			r, err := c.Stream(t.Context(), hub.FileRef{Repo: "org/model", Commit: commit, Path: "model.safetensors", Size: size}, 0, size)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, r); err != nil {
				t.Error(err)
			}
			r.Close()
			if waits != n+1 {
				t.Errorf("call %d, %s: heard of %d waits", i, side, waits)
			}
			for _, q := range server.Requests()[before:] {
				if i > 0 && q.Method == http.MethodHead {
					t.Errorf("call %d, %s: asked again where the file is", i, side)
				}
				if q.Sent > call.rangeBytes || q.Header.Get("User-Agent") != fmt.Sprint("df11-convert/", i) {
					t.Errorf("call %d, %s: %d bytes at once, by %s", i, side, q.Sent, q.Header.Get("User-Agent"))
				}
			}
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
