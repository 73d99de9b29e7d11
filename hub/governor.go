package hub

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Wait is one pause that the client takes, told to Options.OnWait before it
// begins.
type Wait struct {
	Reason string // "rate limit of bucket api reached", "503 Service Unavailable"
	For    time.Duration
	Shared bool // every worker that would use the same bucket waits too
}

// governor slows all workers of a client together. Requests are sorted into
// lanes (the hub's api, its file routes, every storage host); when an answer
// in a lane says that the limit is reached or near, the whole lane waits.
type governor struct {
	clock  Clock
	notify func(Wait)

	mu    sync.Mutex
	lanes map[string]*lane
}

type lane struct {
	until  time.Time     // nobody starts before
	gap    time.Duration // pace while little is left
	next   time.Time     // earliest start under the pace
	paceTo time.Time     // the pace ends when the window does
}

func newGovernor(clock Clock, notify func(Wait)) *governor {
	return &governor{clock: clock, notify: notify, lanes: map[string]*lane{}}
}

func (g *governor) lane(name string) *lane {
	l := g.lanes[name]
	if l == nil {
		l = &lane{}
		g.lanes[name] = l
	}
	return l
}

// wait blocks until the lane is open and takes a place in its pace.
func (g *governor) wait(ctx context.Context, name string) error {
	for {
		d := g.claim(name)
		if d <= 0 {
			return context.Cause(ctx)
		}
		if err := g.clock.Sleep(ctx, d); err != nil {
			return err
		}
	}
}

// claim gives 0 and takes the place, or the time to wait before asking again.
func (g *governor) claim(name string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, now := g.lane(name), g.clock.Now()
	if d := l.until.Sub(now); d > 0 {
		return d
	}
	if l.gap <= 0 || !now.Before(l.paceTo) {
		return 0
	}
	if d := l.next.Sub(now); d > 0 {
		return d
	}
	l.next = now.Add(l.gap)
	return 0
}

// pause closes a lane for d from now; a longer pause that runs already stays.
// Workers that run into the same limit together prolong the pause by their
// jitter only, which is not told again.
func (g *governor) pause(name string, d time.Duration, reason string) {
	g.mu.Lock()
	l, now := g.lane(name), g.clock.Now()
	began := later(now, l.until)
	extra := now.Add(d).Sub(began)
	if extra > 0 {
		l.until = now.Add(d)
	}
	g.mu.Unlock()
	if extra >= time.Second || extra > 0 && began.Equal(now) {
		g.notify(Wait{Reason: reason, For: extra, Shared: true})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lowShare is the part of a quota below which requests are spread over the
// rest of the window; lowCount is used when the quota is not told.
const (
	lowShare = 20 // one twentieth
	lowCount = 10
)

// observe reads the rate headers that come on every answer, and slows the
// lane down before the hub has to refuse anything. A 429 is left to the retry
// loop, which pauses the lane itself.
func (g *governor) observe(name string, resp *http.Response) {
	state, ok := parseRateLimit(resp.Header)
	if !ok || resp.StatusCode == http.StatusTooManyRequests {
		return
	}
	low := int64(lowCount)
	if quota := parseQuota(resp.Header); quota > 0 {
		low = max(quota/lowShare, 1)
	}
	if state.left == 0 && state.reset > 0 {
		g.pause(name, min(state.reset+time.Second, maxHeaderWait), "nothing left in the hub's rate bucket "+state.bucket)
		return
	}
	g.pace(name, state, low)
}

func (g *governor) pace(name string, s rateState, low int64) {
	g.mu.Lock()
	l, now := g.lane(name), g.clock.Now()
	before := l.gap
	l.gap = 0
	if s.left <= low && s.reset > 0 {
		l.gap = s.reset / time.Duration(s.left+1)
		l.paceTo = now.Add(s.reset)
	}
	if before == 0 {
		l.next = now.Add(l.gap)
	}
	gap := l.gap
	g.mu.Unlock()
	if before == 0 && gap > 0 {
		g.notify(Wait{Reason: fmt.Sprintf("only %d requests left in the hub's rate bucket %s", s.left, s.bucket),
			For: gap, Shared: true})
	}
}
