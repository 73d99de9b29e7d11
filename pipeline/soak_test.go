package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// passing are the faults that a conversion may meet at any time and must survive.
var passing = []string{
	"429-ratelimit", "429-retry-after", "429-http-date", "429-bare", "500", "502", "503", "504", "hub-reset", "warning",
	"cdn-500", "cdn-503", "reset", "cut", "short", "chunked", "corrupt", "ignore-range", "wrong-range", "gzip", "expired",
	"batch-500", "put-500", "put-503", "put-timeout", "put-expired", "put-reset", "put-reset-after", "put-wrong-etag",
	"complete-500", "complete-after", "verify-500",
	"commit-412", "commit-409", "commit-500", "commit-500-after", "commit-504-after", "commit-reset-after",
}

// TestSoak converts over a hub that spoils answers at random, from a seed that is printed. A run may give up; the next one
// goes on. In the end the bytes are the same as ever.
func TestSoak(t *testing.T) {
	t.Parallel()
	m := func() *hubtest.Model {
		return hubtest.NewQwen3(3, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 4, ShardBytes: 40_000, Order: hubtest.OrderScattered, Extra: noPicture})
	}
	want := reference(t, m())
	for _, seed := range seeds(t, 3, 30) {
		t.Run(fmt.Sprintf("DF11_SEED=%d", seed), func(t *testing.T) {
			w := newWorld(t, m(), hubtest.WithMultipart(10_000, 6_000))
			if seed%2 == 0 {
				w.change = append(w.change, onDisk)
			}
			rnd := rand.New(rand.NewPCG(seed, 1))
			for _, i := range rnd.Perm(len(passing))[:12] {
				w.Inject(hubtest.Fault{Name: passing[i], Times: hubtest.Always, Probability: 0.01 + 0.05*rnd.Float64(), Seed: rnd.Uint64()})
			}
			soak(t, w)
			sameFiles(t, w.target(), want)
			checkPublished(t, w)
			noGoroutines(t)
			t.Log(describeFaults(w))
		})
	}
}

// soak runs a conversion until it is done; it may give up a few times.
func soak(t *testing.T, w *world) {
	t.Helper()
	work := t.TempDir()
	for run := 1; ; run++ {
		_, err := w.convert(t.Context(), t, work)
		if err == nil {
			return
		}
		noSecret(t, err)
		t.Logf("run %d: %v", run, err)
		if run == 8 {
			t.Fatal("still not done")
		}
		if run%2 == 0 {
			work = t.TempDir()
		}
	}
}
