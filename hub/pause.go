package hub

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Wait is long enough that people wonder. Connection.OnWait reports it.
type Wait struct {
	Host   string        // the Hub or its storage
	Reason string        // "rate limit of bucket api reached", "503 Service Unavailable"
	For    time.Duration // from now on
}

// When people wonder.
const (
	noticeable = 5 * time.Second  // without anything happening
	lately     = 10 * time.Second // short waits within this time count together
	repeated   = 30 * time.Second // until short waits are reported again
)

// pause waits for a host. It reports a long wait, and no other until that one ends. It also reports
// a short one if more than half of the last 10 s went by with waiting.
func (t *transport) pause(ctx context.Context, host, reason string, d time.Duration) error {
	now := t.opt.Clock.Now()
	if t.opt.OnWait != nil && t.waits.notice(now, d) {
		t.opt.OnWait(Wait{Host: host, Reason: reason, For: d})
	}
	return t.opt.Clock.Sleep(ctx, d)
}

// silence is how long a host may take to answer before people wonder.
const silence = 10 * time.Second

// reportSilence reports a host that doesn't begin to answer, within the limit after which the
// request is repeated. Call answered once it does. What an upload sends takes its time, so that
// isn't reported.
func (t *transport) reportSilence(r *request, u *url.URL, limit time.Duration) (answered func()) {
	if t.opt.OnWait == nil || r.body != nil && r.bulk {
		return func() {}
	}
	timer := time.AfterFunc(silence, func() {
		if d := limit - silence; t.waits.notice(t.opt.Clock.Now(), d) {
			t.opt.OnWait(Wait{Host: u.Host, Reason: "it hasn't answered yet", For: d})
		}
	})
	return func() { timer.Stop() }
}

// waits are those of a client's requests.
type waits struct {
	mu     sync.Mutex
	recent []span    // in order, apart from each other
	known  time.Time // when the last reported wait ends
	quiet  time.Time // until then, no short waits are reported
}

type span struct{ from, to time.Time }

// notice notes a wait, and reports whether people should hear of it.
func (w *waits) notice(now time.Time, d time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := now.Add(d)
	if n := len(w.recent); n > 0 && !w.recent[n-1].to.Before(now) {
		if last := &w.recent[n-1]; last.to.Before(end) {
			last.to = end
		}
	} else {
		w.recent = append(w.recent, span{now, end})
	}
	var waited time.Duration
	since := end.Add(-lately)
	w.recent = slices.DeleteFunc(w.recent, func(s span) bool { return s.to.Before(since) })
	for _, s := range w.recent {
		waited += s.to.Sub(slices.MaxFunc([]time.Time{s.from, since}, time.Time.Compare))
	}
	long := d >= noticeable
	if now.Before(w.known) || !long && (waited < noticeable || now.Before(w.quiet)) {
		return false
	}
	w.known, w.quiet = end, end.Add(repeated)
	return true
}

// callWaits are the waits of one call of retry together.
type callWaits struct{ sum atomic.Int64 }

type callWaitsKey struct{}

// withWaits returns a context whose waits count together.
func withWaits(ctx context.Context) (context.Context, *callWaits) {
	w := new(callWaits)
	return context.WithValue(ctx, callWaitsKey{}, w), w
}

// waitsOf returns those of a context, or nil.
func waitsOf(ctx context.Context) *callWaits {
	w, _ := ctx.Value(callWaitsKey{}).(*callWaits)
	return w
}

func (w *callWaits) total() time.Duration { return time.Duration(w.sum.Load()) }

func (w *callWaits) add(d time.Duration) { w.sum.Add(int64(d)) }

// A Clock returns the time and waits. Many goroutines call both methods at once. Sleep returns the
// cause of ctx as soon as ctx ends. The watch over stalled connections uses real time instead.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// systemClock is the system's Clock.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
