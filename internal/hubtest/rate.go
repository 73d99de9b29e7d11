package hubtest

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// link is a wire of limited speed that all transfers in one direction share. A nil link is infinitely fast.
type link struct {
	perSecond float64
	mu        sync.Mutex
	free      time.Time // when everything promised so far has passed
}

// links are the two directions of the line to a server.
type links struct{ down, up *link }

func newLink(bytesPerSecond int64) *link {
	if bytesPerSecond <= 0 {
		return nil
	}
	return &link{perSecond: float64(bytesPerSecond)}
}

// clip shortens p to what passes in about 20 ms, so that several transfers share the wire evenly.
func (l *link) clip(p []byte) []byte {
	if l == nil {
		return p
	}
	return p[:min(len(p), max(512, int(l.perSecond/50)))]
}

// wait returns when n more bytes have passed, or when done is closed.
func (l *link) wait(done <-chan struct{}, n int) {
	if l == nil || n <= 0 {
		return
	}
	l.mu.Lock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(n) / l.perSecond * float64(time.Second)))
	pause := l.free.Sub(now)
	l.mu.Unlock()
	sleep(done, pause)
}

// sleep pauses for d or until done is closed, and says whether it slept through.
func sleep(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}

const (
	rateWindow   = 5 * time.Minute
	defaultQuota = 1_000_000
)

// rateLimits counts requests per bucket and window and writes the RateLimit fields of IETF draft 9, as the hub does on
// every answer.
type rateLimits struct {
	quota map[string]int

	mu    sync.Mutex
	start time.Time
	used  map[string]int
}

func bucketOf(r *http.Request) string {
	switch p := r.URL.Path; {
	case strings.HasPrefix(p, "/api/resolve-cache/"), strings.Contains(p, "/resolve/"):
		return "resolvers"
	case strings.HasPrefix(p, "/api/"), strings.Contains(p, ".git/info/lfs/"):
		return "api"
	}
	return "pages"
}

func (l *rateLimits) limit(bucket string) int { return cmp.Or(l.quota[bucket], defaultQuota) }

// stamp counts r and sets both header fields.
func (l *rateLimits) stamp(h http.Header, r *http.Request, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used == nil || now.Sub(l.start) >= rateWindow {
		l.start, l.used = now, map[string]int{}
	}
	b := bucketOf(r)
	l.used[b]++
	left := max(0, l.limit(b)-l.used[b])
	reset := int((rateWindow - now.Sub(l.start)) / time.Second)
	h.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", b, left, max(1, reset)))
	h.Set("RateLimit-Policy", fmt.Sprintf("%q;%q;q=%d;w=%d", "fixed window", b, l.limit(b), int(rateWindow/time.Second)))
}

// check refuses a request whose bucket was used up before it.
func (l *rateLimits) check(r *http.Request) *refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := bucketOf(r); l.used[b] > l.limit(b) {
		return fail(http.StatusTooManyRequests, "We had to rate limit you. Bucket: %s", b)
	}
	return nil
}
