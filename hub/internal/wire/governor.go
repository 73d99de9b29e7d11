package wire

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// A Governor slows all workers of all clients that share it: a limit that one of them hits holds
// for the others too. It sorts requests into lanes, one for each limit of a hub. When an answer
// says that a limit is reached, its whole lane waits. A program has one Governor.
type Governor struct {
	answered atomic.Bool   // something answered a request
	in, out  *rate.Limiter // for the file bytes of all clients; without a limit, their burst is 0

	mu    sync.Mutex
	lanes map[lane]pause
	hosts map[string]reach
}

// reach is what is known of a host: whether it has ever answered or even served anything, and when its
// requests began to fail, and failed last, without one that was served in between.
type reach struct {
	spoken, served bool
	since, last    time.Time
}

// reached notes that a host serves.
func (g *Governor) reached(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hosts[host] = reach{spoken: true, served: true}
}

// spoke notes that a host has sent an answer, whatever it says.
func (g *Governor) spoke(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.hosts[host]
	h.spoken = true
	g.hosts[host] = h
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
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.hosts[host]
	if h.since.IsZero() || now.Sub(h.last) > longestGap {
		h.since = now
	}
	h.last = now
	g.hosts[host] = h
	return now.Sub(h.since)
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
func NewGovernor() *Governor {
	return &Governor{lanes: map[lane]pause{}, hosts: map[string]reach{},
		in: rate.NewLimiter(rate.Inf, 0), out: rate.NewLimiter(rate.Inf, 0)}
}

// limit sets the rate of all clients' file bytes in each direction. The bytes of 0.1 s may pass
// at once.
func (g *Governor) limit(bytesPerSecond int64) {
	for _, l := range []*rate.Limiter{g.in, g.out} {
		l.SetBurst(int(max(1, bytesPerSecond/10)))
		l.SetLimit(rate.Limit(bytesPerSecond))
	}
}

// errImpatient says that a lane stays closed for longer than a call may wait.
var errImpatient = errors.New("the wait would be too long")

// wait waits until a lane is open. Others may close it again meanwhile. Within a call of Retry, the
// wait counts as one of the call's, and errImpatient ends it.
func (g *Governor) wait(ctx context.Context, t *Transport, key lane) error {
	for {
		g.mu.Lock()
		now := g.lanes[key]
		g.mu.Unlock()
		d := now.until.Sub(t.Opt.Clock.Now())
		if d <= 0 {
			return context.Cause(ctx)
		}
		if waited := waitsOf(ctx); waited != nil {
			if waited.total()+d > t.Opt.Patience {
				return errImpatient
			}
			waited.add(d)
		}
		if err := t.Pause(ctx, key.host, now.reason, d); err != nil {
			return err
		}
	}
}

// close keeps a lane closed for d, or as long as it already is.
func (g *Governor) close(now time.Time, key lane, d time.Duration, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := now.Add(d); until.After(g.lanes[key].until) {
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
	kind   string // Request.Lane
}

// isStorage reports whether the lane is a storage host's.
func (l lane) isStorage() bool { return l.host != "" && l == lane{host: l.host} }

// laneOf returns the lane of a request's hop.
func (t *Transport) laneOf(r *Request, u *url.URL) lane {
	if !t.Endpoint.Owns(u) {
		return lane{host: u.Host}
	}
	return lane{u.Host, t.caller, r.Lane}
}
