package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

func faultWorld(t *testing.T) *world {
	w := newWorld(t, small(), hubtest.WithMultipart(10_000, 6_000))
	w.hub = append(w.hub, func(o *hub.Options) {
		o.HeaderTimeout, o.IdleTimeout = 500*time.Millisecond, 500*time.Millisecond
		o.RateWindow, o.MinRate = 300*time.Millisecond, 100
	})
	return w
}

func TestExplore(t *testing.T) {
	for range 3 {
		w := faultWorld(t)
		w.mustConvert(t)
		fmt.Println("baseline", len(w.Requests()))
	}
	for _, name := range hubtest.FaultNames() {
		for _, times := range []int{1, hubtest.Always} {
			w := faultWorld(t)
			w.Inject(hubtest.Fault{Name: name, Times: times})
			begin := time.Now()
			_, err := w.convert(t.Context(), t, t.TempDir())
			fmt.Printf("%s times %d: acted %d requests %d waited %v took %v: %v | %s\n", name, times, w.FaultsActed(name), len(w.Requests()), w.clock.waited().Round(time.Second), time.Since(begin).Round(time.Millisecond), err, hub.Hint(err))
		}
	}
}
