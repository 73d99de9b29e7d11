package hub

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// A Governor slows all clients that share it: a limit that one of them hits holds for the others
// too. It sorts requests into lanes, one for each limit of a hub. When an answer says that a limit
// is reached, its whole lane waits. A program has one Governor.
type Governor struct {
	answered atomic.Bool  // something answered a request
	in, out  rate.Limiter // for the file bytes of all clients; without a limit, their burst is 0

	mu    sync.Mutex
	lanes map[lane]pause
	hosts map[string]reach
}

// reach is what is known of a host: whether it has ever answered or even served anything, and when
// its requests began to fail, and failed last, without one that was served in between.
type reach struct {
	spoken, served bool
	since, last    time.Time
}

// note changes what is known of a host, and returns it.
func (g *Governor) note(host string, change func(*reach)) reach {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.hosts[host]
	change(&h)
	if g.hosts == nil {
		g.hosts = map[string]reach{}
	}
	g.hosts[host] = h
	return h
}

// reached notes that a host serves.
func (g *Governor) reached(host string) {
	g.note(host, func(h *reach) { *h = reach{spoken: true, served: true} })
}

// spoke notes that a host has sent an answer, whatever it says.
func (g *Governor) spoke(host string) {
	g.note(host, func(h *reach) { h.spoken = true })
}

// hasSpoken reports whether a host has ever sent an answer.
func (g *Governor) hasSpoken(host string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hosts[host].spoken
}

// longestGap is the longest time between two failures of one outage.
const longestGap = 3 * time.Minute

// away notes that a request to a host has failed, and returns for how long all of them have. So no
// loop, and no caller of one, waits again for a host on which another one has given up.
func (g *Governor) away(host string, now time.Time) time.Duration {
	failing := g.note(host, func(h *reach) {
		if h.since.IsZero() || now.Sub(h.last) > longestGap {
			h.since = now
		}
		h.last = now
	})
	return now.Sub(failing.since)
}

// hasServed reports whether a host has ever served anything.
func (g *Governor) hasServed(host string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hosts[host].served
}

type pause struct {
	until  time.Time // no one starts before
	reason string
}

// NewGovernor returns a Governor without limits.
func NewGovernor() *Governor { return new(Governor) }

// limit sets the rate of all clients' file bytes in each direction. The bytes of 0.1 s may pass
// at once.
func (g *Governor) limit(bytesPerSecond int64) {
	for _, l := range []*rate.Limiter{&g.in, &g.out} {
		l.SetBurst(int(max(1, bytesPerSecond/10)))
		l.SetLimit(rate.Limit(bytesPerSecond))
	}
}

// errImpatient says that a lane stays closed for longer than a call may wait.
var errImpatient = errors.New("the wait would be too long")

// wait waits until a lane is open. Others may close it again meanwhile. Within a call of retry, the
// wait counts as one of the call's, and errImpatient ends it.
func (g *Governor) wait(ctx context.Context, t *transport, key lane) error {
	for {
		g.mu.Lock()
		now := g.lanes[key]
		g.mu.Unlock()
		d := now.until.Sub(t.opt.Clock.Now())
		if d <= 0 {
			return context.Cause(ctx)
		}
		if waited := waitsOf(ctx); waited != nil {
			if waited.total()+d > t.opt.Patience {
				return errImpatient
			}
			waited.add(d)
		}
		if err := t.pause(ctx, key.host, now.reason, d); err != nil {
			return err
		}
	}
}

// close keeps a lane closed for d, or as long as it already is.
func (g *Governor) close(now time.Time, key lane, d time.Duration, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := now.Add(d); until.After(g.lanes[key].until) {
		if g.lanes == nil {
			g.lanes = map[lane]pause{}
		}
		g.lanes[key] = pause{until, reason}
	}
}

// maxHeaderWait is the longest wait that a server can ask for.
const maxHeaderWait = 10 * time.Minute

// A lane is the requests that one limit covers: a token's API calls, its file routes, commits and
// new repos, which have hourly quotas, and each storage host, which knows neither caller nor kind.
type lane struct {
	host   string
	caller string // token or publisher
	kind   string // request.lane
}

// isStorage reports whether the lane is a storage host's.
func (l lane) isStorage() bool { return l.host != "" && l == lane{host: l.host} }

// laneOf returns the lane of a request's hop.
func (t *transport) laneOf(r *request, u *url.URL) lane {
	if !t.endpoint.owns(u) {
		return lane{host: u.Host}
	}
	return lane{u.Host, t.caller, r.lane}
}
