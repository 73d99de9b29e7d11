package wire

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Governor slows all workers of all clients that share it: a limit that one of them is told holds for the others as
// well. Requests are sorted into lanes, one for each limit that a hub keeps: a token's api calls, its file routes, and
// every storage host. When an answer says that a limit is reached, its whole lane waits. A program has one
// Governor.
type Governor struct {
	answered atomic.Bool // something has answered a request
	in, out  throttle    // of the file bytes of all clients

	mu    sync.Mutex
	lanes map[laneKey]lane
}

type lane struct {
	until  time.Time // nobody starts before
	reason string    // of the latest wait
}

// NewGovernor makes one that knows of no limit yet.
func NewGovernor() *Governor { return &Governor{lanes: map[laneKey]lane{}} }

// wait blocks until the lanes are open, one after the other.
func (g *Governor) wait(ctx context.Context, p *pauses, keys ...laneKey) error {
	for _, key := range slices.Compact(keys) {
		for {
			d, reason := g.closed(p.clock.Now(), key)
			if d <= 0 {
				break
			}
			if err := p.sleep(ctx, Wait{Reason: reason, For: d}); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// closed is how long a lane will still be closed, and why.
func (g *Governor) closed(now time.Time, key laneKey) (time.Duration, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[key]
	return l.until.Sub(now), l.reason
}

// pause closes a lane for d from now; a longer pause that runs already stays. It gives the Wait to tell, or none: workers
// that run into the same limit together prolong the pause by their jitter only, which is no news.
func (g *Governor) pause(now time.Time, key laneKey, d time.Duration, reason string) (news Wait) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[key]
	runs := l.until.After(now)
	extra := d
	if runs {
		extra = now.Add(d).Sub(l.until)
	}
	if extra > 0 {
		g.lanes[key] = lane{now.Add(d), reason}
	}
	if runs && extra < time.Second {
		return Wait{}
	}
	return Wait{Reason: reason, For: extra}
}

// maxHeaderWait is the ceiling of a wait that the server asks for.
const maxHeaderWait = 10 * time.Minute

// observe reads the rate headers that come on every answer: when nothing is left, the lane waits before the hub has to refuse
// anything. A 429 is left to the retry loop, which pauses the lane itself. Like pause, it gives the Wait to tell.
func (g *Governor) observe(now time.Time, key laneKey, resp *http.Response) (news Wait) {
	bucket, reset, empty := parseRateLimit(resp.Header)
	if !empty || reset == 0 || resp.StatusCode == http.StatusTooManyRequests {
		return Wait{}
	}
	return g.pause(now, key, min(reset+time.Second, maxHeaderWait), "nothing left in the hub's rate bucket "+bucket)
}

// unreached says whether no connection came about, and no answer ever has.
func (g *Governor) unreached(err error) bool {
	return !g.answered.Load() && NeverBegun(err)
}
