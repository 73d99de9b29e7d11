package pipeline_test

import (
	"errors"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/pipeline"
)

// A value that's misspelled is refused before anything is asked or written. It's never taken for
// another one: "Private" isn't public.
func TestMisspelledOptions(t *testing.T) {
	for name, o := range map[string]pipeline.Options{
		"visibility":  {Push: true, Visibility: "Private"},
		"GPU":         {Means: pipeline.Means{GPU: "required"}},
		"workers":     {Means: pipeline.Means{Workers: -1}},
		"memory":      {Means: pipeline.Means{Memory: -1}},
		"disk":        {Disk: -1},
		"rate":        {Means: pipeline.Means{Hubs: &pipeline.Hubs{RateLimit: -1}}},
		"shards":      {Part: 3, Parts: 2, Push: true},
		"no --push":   {Visibility: pipeline.Private},
		"half a part": {Part: 1, Push: true},
	} {
		if _, err := pipeline.Convert(t.Context(), t.TempDir(), o); !errors.Is(err, pipeline.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Calls at once leave the limits of the garbage collector as they found them.
func TestCollectorIsRestored(t *testing.T) {
	limit := debug.SetMemoryLimit(-1)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			_, err := pipeline.Plan(t.Context(), t.TempDir(),
				pipeline.PlanOptions{Options: pipeline.Options{Means: pipeline.Means{Memory: 128 << 20}}})
			if err == nil {
				t.Error("an empty folder is planned")
			}
		})
	}
	calls.Wait()
	if now := debug.SetMemoryLimit(-1); now != limit {
		t.Errorf("the memory limit is %d, was %d", now, limit)
	}
}
