package hubtest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLink: all transfers in one direction share a link, which never passes more than its speed and
// doesn't make up for a pause.
func TestLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(100_000)
		start := time.Now()
		took := func(want time.Duration) {
			t.Helper()
			if got := time.Since(start).Round(time.Millisecond); got != want {
				t.Errorf("it took %s, want %s", got, want)
			}
		}
		l.wait(nil, 50_000)
		took(500 * time.Millisecond)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				for range 100 {
					l.wait(nil, 1000)
				}
			})
		}
		both.Wait()
		took(2500 * time.Millisecond)
		time.Sleep(time.Hour)
		l.wait(nil, 100_000)
		took(time.Hour + 3500*time.Millisecond)
		done := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(done) })
		l.wait(done, 1_000_000)
		took(time.Hour + 4500*time.Millisecond)
		for _, nothing := range []*link{newLink(0), newLink(-1)} {
			nothing.wait(nil, 1<<40)
			if n := len(nothing.clip(make([]byte, 1<<20))); n != 1<<20 {
				t.Errorf("an unlimited link takes %d bytes at once", n)
			}
		}
		took(time.Hour + 4500*time.Millisecond)
		if n, slow := len(l.clip(make([]byte, 1<<20))), len(newLink(1).clip(make([]byte, 1<<20))); n != 2000 || slow != 512 {
			t.Errorf("links take %d and %d bytes at once", n, slow)
		}
	})
}

// TestLinkOfServer: a server's link limits bodies of both directions, and latency comes before each
// answer.
func TestLinkOfServer(t *testing.T) {
	s := Start(t, WithLinkSpeed(1_000_000, 500_000), WithLatency(30*time.Millisecond))
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": make([]byte, 100_000)})
	begin := time.Now()
	link := location(t, s, "me/m", "w.safetensors")
	if took := time.Since(begin); took < 30*time.Millisecond {
		t.Errorf("an answer after %s", took)
	}
	begin = time.Now()
	must(t, "GET", link, "", "")
	if took := time.Since(begin); took < 130*time.Millisecond {
		t.Errorf("100 kB were fetched in %s", took)
	}
	data := make([]byte, 50_001)
	up := batch(t, s, "me/m", data).Actions["upload"].Href
	begin = time.Now()
	must(t, "PUT", up, "", string(data))
	if took := time.Since(begin); took < 130*time.Millisecond {
		t.Errorf("50 kB were sent in %s", took)
	}
}
