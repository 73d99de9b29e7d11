package hub

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLongWaitsAreReportedOnce checks a hub that answers 429 forever and doesn't say when to retry,
// with several waiting workers. OnWait reports every long wait, and none while another lasts.
func TestLongWaitsAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var noticed, over time.Duration
		start := time.Now()
		c, _ := testTransport(t, script(says(429, "")), realTime, func(o *Options) {
			o.OnWait = func(w Wait) {
				mu.Lock()
				defer mu.Unlock()
				now := time.Since(start)
				if now < over || w.For < noticeable && noticed > 0 { // the first one sums up short ones
					t.Errorf("noticed after %v of %v, when people knew of a wait until %v", now, w.For, over)
				}
				noticed, over = noticed+w.For, now+w.For
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
		if took := time.Since(start); took < time.Hour || noticed < took*9/10 {
			t.Errorf("people heard of %v of %v", noticed, took)
		}
	})
}

// TestAWaitIsReportedOnce checks that a wait reported by OnWait isn't also logged as a warning.
func TestAWaitIsReportedOnce(t *testing.T) {
	for _, refused := range []string{"Retry-After: 20", `RateLimit: "api";r=0;t=20`} {
		var log bytes.Buffer
		noticed := 0
		c, _ := testTransport(t, script(says(429, "", refused), says(200, okUser)), func(o *Options) {
			o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			o.OnWait = func(Wait) { noticed++ }
		})
		if _, err := whoAmI(t.Context(), c); err != nil || noticed != 1 || log.Len() > 0 {
			t.Errorf("noticed %d times, logged %q, %v", noticed, log.String(), err)
		}
	}
}

// TestNobodyAsksAnEmptyBucket checks that a client waits before a request that the Hub would
// refuse, because its last answer said that nothing is left. A storage's header says nothing of the
// Hub.
func TestNobodyAsksAnEmptyBucket(t *testing.T) {
	for header, want := range map[string]time.Duration{
		`RateLimit: "api";r=0;t=20`: 21 * time.Second, `RateLimit: "api";r=1;t=20`: 0, `RateLimit: "api";r=10;t=20`: 0, "RateLimit: ": 0,
		`RateLimit: "api";r=0;t=99999999`: maxHeaderWait + time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			start, said := time.Now(), ""
			c, _ := testTransport(t, script(says(200, okUser, header), says(200, okUser)), realTime, func(o *Options) {
				o.OnWait = func(w Wait) { said = w.Reason }
			})
			for range 2 {
				if _, err := whoAmI(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(start); took != want || (said != "") != (want > 0) || want > 0 && said != "rate limit of bucket api reached" {
				t.Errorf("%s: waited %v for %q", header, took, said)
			}
		})
	}
}

// TestWaitsForOthersCount checks a lane that others close again and again, by the refusals of their
// own requests: the waits of a call never take longer than its patience, whether its own requests
// are refused or it never gets to make one.
func TestWaitsForOthersCount(t *testing.T) {
	for name, first := range map[string]func(*http.Request) (*http.Response, error){
		"an empty bucket": says(200, okUser, `RateLimit: "api";r=0;t=20`), "a refusal": says(429, "", "Retry-After: 20"),
	} {
		synctest.Test(t, func(t *testing.T) {
			start, closed := time.Now(), 0
			var c *transport
			w := script(first, says(200, okUser))
			c, _ = testTransport(t, w, realTime, func(o *Options) {
				o.Patience = 30 * time.Minute
				o.OnWait = func(wait Wait) {
					if closed++; closed < 100 {
						l := c.laneOf(&request{token: true}, c.endpoint.URL)
						c.opt.Governor.close(time.Now(), l, wait.For+5*time.Minute, "rate limit reached")
					}
				}
			})
			_, err := whoAmI(t.Context(), c)
			if err == nil {
				_, err = whoAmI(t.Context(), c)
			}
			if took := time.Since(start); !errors.Is(err, ErrRateLimited) || took > 30*time.Minute || took < 20*time.Minute || w.Count() != 1 {
				t.Errorf("%s: %v after %v, %d requests", name, err, took, w.Count())
			}
		})
	}
}

// TestManyShortWaitsAreReported checks a hub that refuses every third request, from the first one
// on, and doesn't say when to retry. People hear of it within 10 s, and not at every request. A
// refusal now and then is nothing to tell.
func TestManyShortWaitsAreReported(t *testing.T) {
	for _, tt := range []struct {
		every   int           // that many requests bring one refusal
		took    time.Duration // each
		reports bool
	}{{3, 50 * time.Millisecond, true}, {3, 200 * time.Millisecond, true}, {2, 300 * time.Millisecond, true}, {20, 500 * time.Millisecond, false}} {
		synctest.Test(t, func(t *testing.T) {
			start, n := time.Now(), 0
			var reported []time.Duration
			w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
				time.Sleep(tt.took)
				if n++; n%tt.every == 0 {
					return says(429, "")(r)
				}
				return says(200, okUser)(r)
			}}
			c, _ := testTransport(t, w, realTime, func(o *Options) {
				o.OnWait = func(Wait) { reported = append(reported, time.Since(start)) }
			})
			for time.Since(start) < 2*time.Minute {
				if _, err := whoAmI(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			if len(reported) > 5 || (len(reported) > 0) != tt.reports || tt.reports && reported[0] > lately {
				t.Errorf("1 of %d refused: reported at %v", tt.every, reported)
			}
		})
	}
}

// TestASilentHubIsReported checks that people hear of a first request that isn't answered, long
// before it's repeated, and not of one that is answered in time.
func TestASilentHubIsReported(t *testing.T) {
	for took, want := range map[time.Duration][]time.Duration{8 * time.Second: nil, 12 * time.Second: {10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var reported []time.Duration
			w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
				time.Sleep(took)
				return says(200, okUser)(r)
			}}
			c, _ := testTransport(t, w, realTime, func(o *Options) {
				o.StallTimeout = 30 * time.Second
				o.OnWait = func(w Wait) { reported = append(reported, time.Since(start)) }
			})
			_, err := whoAmI(t.Context(), c)
			synctest.Wait()
			if err != nil || !slices.Equal(reported, want) {
				t.Errorf("an answer after %v: reported at %v, %v", took, reported, err)
			}
		})
	}
}
