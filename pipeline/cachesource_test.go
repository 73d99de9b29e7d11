package pipeline_test

import (
	"maps"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestKeepWeights: the weights end up in the shared cache, a second conversion reads them there, and the result is the
// same as without.
func TestKeepWeights(t *testing.T) {
	srv := hubtest.Start(t)
	srv.AddModel("a/llama", hubtest.NewLlama(7, partsModel))
	if _, err := pushFrom(t, srv, "a/llama", "a/plain", nil); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	keep := func(o *pipeline.Options) {
		c, err := hub.New(hub.Options{Endpoint: srv.URL, Token: "hf_test", CacheDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		src, model, err := pipeline.OpenHub(t.Context(), c, "a/llama", "", plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.Source, o.Model = pipeline.KeepWeights(src), model
	}
	for _, target := range []string{"a/first", "a/second"} {
		srv.ResetLog()
		if _, err := pushFrom(t, srv, "a/llama", target, keep); err != nil {
			t.Fatal(err)
		}
		if got, want := contents(srv, target), contents(srv, "a/plain"); !maps.Equal(got, want) {
			t.Errorf("%s differs from a conversion without the cache", target)
		}
	}
	c, err := hub.New(hub.Options{Endpoint: srv.URL, CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.Info(t.Context(), "a/llama", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range info.Files {
		if _, ok := c.CachedPath(f.Ref(info.ID, info.SHA)); f.SHA256 != "" && !ok {
			t.Errorf("%s is not in the cache", f.Path)
		}
	}
}
