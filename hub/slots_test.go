package hub

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// watchSize notes the number of connections every second until the test ends.
func watchSize(t *testing.T, c *Client) (sizes func() []int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var seen []int
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			seen = append(seen, c.files.conns.size())
			_ = systemClock{}.Sleep(ctx, time.Second)
		}
	})
	return func() []int {
		stop()
		done.Wait()
		return seen
	}
}

// readAt reads n bytes of a stream and gives the bytes per second.
func readAt(t *testing.T, s io.Reader, n int64) float64 {
	t.Helper()
	start := time.Now()
	if got, err := io.CopyN(io.Discard, s, n); got != n || err != nil {
		t.Fatal(got, err)
	}
	return float64(n) / time.Since(start).Seconds()
}

// TestALineThatLimitsEachConnectionIsFilled: the client goes on to as many connections as help.
func TestALineThatLimitsEachConnectionIsFilled(t *testing.T) {
	const rate = 256 << 10
	h := &edgeHub{size: 60 * manySlots * rate, rate: steady(rate), nWanted: -1}
	h.overPipes(t, func(t *testing.T, c *Client) {
		s, err := c.Stream(t.Context(), h.ref(), 0, h.size)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		first := readAt(t, s, h.size/2) / (manySlots * rate)
		then := readAt(t, s, h.size/2) / (manySlots * rate)
		t.Logf("%.0f %%, then %.0f %% of what %d connections offer", 100*first, 100*then, manySlots)
		if c.files.conns.size() != manySlots || first < 0.6 || then < 0.9 {
			t.Errorf("%d connections, %.2f, %.2f", c.files.conns.size(), first, then)
		}
	})
}

// TestAFullLineKeepsItsConnections: where eight connections fill a line, others are tried now and then, and given up.
func TestAFullLineKeepsItsConnections(t *testing.T) {
	const line = 4 << 20
	h := &edgeHub{size: 150 * line, rate: steady(line), line: line, nWanted: -1}
	h.overPipes(t, func(t *testing.T, c *Client) {
		sizes := watchSize(t, c)
		if share := h.share(t, c, line); share < 0.95 {
			t.Errorf("%.0f %% of the line", 100*share)
		}
		sum, seen := 0, sizes()
		for _, n := range seen {
			sum += n
			if n > 2*fewSlots {
				t.Fatalf("%d connections: %v", n, seen)
			}
		}
		t.Log(seen)
		if average := float64(sum) / float64(len(seen)); average > 1.2*fewSlots {
			t.Errorf("%.1f connections on average: %v", average, seen)
		}
	})
}

// TestConnectionsThatAreRefusedAreGivenUp: a storage that takes 20 transfers at once gets no more than 16 for most of the time.
func TestConnectionsThatAreRefusedAreGivenUp(t *testing.T) {
	const rate = 256 << 10
	h := &edgeHub{size: 16 * rate * 100, rate: steady(rate), mostAt: 20, nWanted: -1}
	h.overPipes(t, func(t *testing.T, c *Client) {
		sizes := watchSize(t, c)
		share := h.share(t, c, 16*rate)
		seen := sizes()
		above := 0
		for _, n := range seen {
			if n > 16 {
				above++
			}
		}
		if n := c.Stats().Retries; share < 0.8 || above > len(seen)/10 || n == 0 || n > 40 {
			t.Errorf("%.0f %% of what 16 connections offer, %d retries: %v", 100*share, n, seen)
		}
	})
}

// TestAReaderThatIsSlowNeedsFewConnections: more of them would only fill memory.
func TestAReaderThatIsSlowNeedsFewConnections(t *testing.T) {
	h := &edgeHub{size: 400 * edgeRange, rate: steady(4 * edgeRange), nWanted: -1}
	h.overPipes(t, func(t *testing.T, c *Client) {
		s, err := c.Stream(t.Context(), h.ref(), 0, h.size)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range h.size / edgeRange {
			readAt(t, s, edgeRange)
			time.Sleep(time.Second / 4) // an eighth of what 8 connections offer
		}
		if n, nBuffers := c.files.conns.size(), c.files.nBuffers.Load(); n != fewSlots || nBuffers != 2*fewSlots {
			t.Errorf("%d connections, %d buffers", n, nBuffers)
		}
	})
}

// TestConnectionsStayWithinMemory: there are never more than buffers.
func TestConnectionsStayWithinMemory(t *testing.T) {
	for _, tt := range []struct {
		connections         int
		rng, buffer         int64
		least, most, nAhead int
	}{
		{0, 0, 0, 8, 32, 32},
		{0, 1 << 20, 16 << 20, 8, 16, 16},
		{0, 1 << 20, 4 << 20, 4, 4, 4},
		{0, 4 << 20, 1 << 20, 1, 1, 0}, // every stream has one buffer of its own
		{5, 0, 0, 5, 5, 10},
		{5, 1 << 20, 5 << 20, 5, 5, 5},
	} {
		c, err := New(Options{Connections: tt.connections, RangeBytes: tt.rng, BufferBytes: tt.buffer})
		if err != nil {
			t.Fatal(err)
		}
		if s := c.files.conns; s.least != tt.least || s.size() != tt.least || s.most != tt.most || cap(c.files.buffers) != tt.nAhead {
			t.Errorf("%+v: %d to %d connections, %d buffers", tt, s.least, s.most, cap(c.files.buffers))
		}
	}
}

// TestAWaitingTransferHoldsNoSlot: while one transfer waits before it goes on, the only slot serves another.
func TestAWaitingTransferHoldsNoSlot(t *testing.T) {
	for name, refuse := range map[string]func(*http.Request) (*http.Response, error){
		"fails":         says(500, ""),
		"breaks":        breaks(io.ErrUnexpectedEOF),
		"asks to wait":  says(503, "", "Retry-After: 60"),
		"has a quota":   says(429, "", `RateLimit: "cdn";r=0;t=60`),
		"link is stuck": says(500, ""),
	} {
		synctest.Test(t, func(t *testing.T) {
			failures := 2
			w := &wire{}
			w.answer = func(r *http.Request) (*http.Response, error) {
				sick := r.URL.Host == "sick.test" || r.Method == http.MethodHead && r.URL.Path == "/a/b/resolve/"+testCommit+"/sick" && name == "link is stuck"
				switch {
				case sick && failures > 0:
					failures--
					return refuse(r)
				case r.Method == http.MethodHead:
					host := map[bool]string{true: "sick", false: "well"}[r.URL.Path[len(r.URL.Path)-4:] == "sick"]
					return reply(r, 302, "", "X-Repo-Commit: "+testCommit, "X-Linked-ETag: "+shaA, "X-Linked-Size: 5", "Location: https://"+host+".test/x"), nil
				case r.Method == http.MethodGet:
					return reply(r, 206, "12345", "Content-Range: bytes 0-4/5"), nil
				}
				_, err := io.Copy(io.Discard, r.Body)
				return reply(r, 200, ""), err
			}
			c, _ := testClient(t, w, realTime, func(o *Options) { o.Connections = 1 })
			down := func(path string) error {
				_, err := c.ReadRange(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: path, Size: 5, SHA256: shaA}, 0, 5)
				return err
			}
			stream := func(path string) error {
				s, err := c.Stream(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: path, Size: 5, SHA256: shaA}, 0, 5)
				if err != nil {
					return err
				}
				defer s.Close()
				_, err = io.ReadAll(s)
				return err
			}
			up := func(path string) error {
				u := &upload{t: c.t, puts: c.puts, repo: "a/b", Blob: Blob{Path: path, Size: 5, Reader: zeros{}}}
				_, err := u.put(t.Context(), "https://"+path+".test/x", nil, 0, 5, false)
				return err
			}
			for way, transfer := range map[string]func(string) error{"down": down, "stream": stream, "up": up} {
				if name == "link is stuck" && way == "up" {
					continue
				}
				failures = 2
				start := time.Now()
				var both sync.WaitGroup
				both.Go(func() {
					if err := transfer("sick"); err != nil || time.Since(start) < time.Second {
						t.Errorf("%s %s: after %v: %v", name, way, time.Since(start), err)
					}
				})
				synctest.Wait() // it has the slot, or waits already
				if err := transfer("well"); err != nil || time.Since(start) > 0 {
					t.Errorf("%s %s: the other waited %v: %v", name, way, time.Since(start), err)
				}
				both.Wait()
			}
		})
	}
}

// TestSlotsAreNeverLost: whatever comes in between, there are never more transfers than slots, and none is lost.
func TestSlotsAreNeverLost(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			var moved counters
			s := newSlots(2, 16, &moved.bytesIn)
			var all sync.WaitGroup
			for i := range uint64(40) {
				rnd := rand.New(rand.NewPCG(seed, i))
				all.Go(func() {
					for range 50 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(2000))*time.Millisecond)
						mine := &slot{of: s}
						switch err := mine.take(ctx); {
						case err == nil:
							time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
							moved.bytesIn.Add(int64(rnd.IntN(4 << 20)))
							if rnd.IntN(50) == 0 {
								s.throttled()
							}
						case !errors.Is(err, context.DeadlineExceeded):
							t.Error(err)
						}
						mine.giveBack()
						cancel()
						_ = systemClock{}.Sleep(t.Context(), time.Duration(rnd.IntN(3))*time.Second)
						s.mu.Lock()
						if len(s.free)+s.running > s.limit+s.surplus || s.limit < s.least || s.limit > s.most {
							t.Errorf("%d run, %d are free, %d of %d must go", s.running, len(s.free), s.surplus, s.limit)
						}
						s.mu.Unlock()
					}
				})
			}
			all.Wait()
			if s.running != 0 || s.surplus != 0 || len(s.free) != s.limit {
				t.Errorf("seed "+strconv.FormatUint(seed, 10)+": %d run, %d are free of %d", s.running, len(s.free), s.limit)
			}
		})
	}
}
