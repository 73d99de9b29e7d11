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

// heard are the moments at which a client told people why nothing moves.
type heard struct {
	mu    sync.Mutex
	times []time.Time
}

// listen hears what people would be shown.
func listen(c *Transport) *heard {
	h := &heard{times: []time.Time{c.Opt.Clock.Now()}}
	c.pauses.onWait = func(Wait) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.times = append(h.times, c.Opt.Clock.Now())
	}
	return h
}

// longest is the longest silence.
func (h *heard) longest() (quiet time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.times[1:] {
		quiet = max(quiet, h.times[i+1].Sub(h.times[i]))
	}
	return quiet
}

// TestLongWaitsAreNeverSilent: a hub that answers 429 for ever, without a word
// about when to come back, is waited for by several workers. People hear of it
// every half minute, and not from all workers at once.
func TestLongWaitsAreNeverSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := script(says(429, ""))
		c, _ := testTransport(t, w, realTime)
		said := listen(c)
		start := time.Now()
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if _, err := whoAmI(t.Context(), c); !errors.Is(err, ErrRateLimited) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if took, quiet := time.Since(start), said.longest(); took < time.Hour || quiet > remindEvery || len(said.times) > int(2*took/remindEvery) {
			t.Errorf("silent for %v of %v, told %d times", quiet, took, len(said.times))
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
