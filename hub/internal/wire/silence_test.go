package wire

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLongWaitsAreToldOnce: a hub answers 429 for ever, without a word about when to come back, and
// several workers wait for it. People hear of every long wait, and never of one while another lasts.
func TestLongWaitsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told, over time.Duration
		start := time.Now()
		c, _ := testTransport(t, script(says(429, "")), realTime, func(o *Options) {
			o.OnWait = func(w Wait) {
				mu.Lock()
				defer mu.Unlock()
				now := time.Since(start)
				if now < over || w.For < noticeable {
					t.Errorf("told after %v of %v, when people knew of a wait until %v", now, w.For, over)
				}
				told, over = told+w.For, now+w.For
			}
		})
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if _, err := whoAmI(t.Context(), c); !errors.Is(err, ErrRateLimited) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if took := time.Since(start); took < time.Hour || told < took*9/10 {
			t.Errorf("people heard of %v of %v", told, took)
		}
	})
}

// TestAWaitIsToldOnce: who listens to OnWait hears of a wait there, and does not read of it in a
// warning as well.
func TestAWaitIsToldOnce(t *testing.T) {
	for _, refused := range []string{"Retry-After: 20", `RateLimit: "api";r=0;t=20`} {
		var log bytes.Buffer
		told := 0
		c, _ := testTransport(t, script(says(429, "", refused), says(200, okUser)), func(o *Options) {
			o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			o.OnWait = func(Wait) { told++ }
		})
		if _, err := whoAmI(t.Context(), c); err != nil || told != 1 || log.Len() > 0 {
			t.Errorf("told %d times, logged %q, %v", told, log.String(), err)
		}
	}
}
