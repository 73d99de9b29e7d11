package wire

import (
	"context"
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

// reach is what is known of a host: whether it has ever served anything, and whether a loop has
// given up on it since.
type reach struct{ served, lost bool }

// reached notes that a host serves.
func (g *Governor) reached(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hosts[host] = reach{served: true}
}

// lose notes that a loop has given up on a host. Until the host serves again, no other loop waits
// as long for it.
func (g *Governor) lose(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hosts[host] = reach{g.hosts[host].served, true}
}

func (g *Governor) reach(host string) reach {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hosts[host]
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

// wait waits until a lane is open.
func (g *Governor) wait(ctx context.Context, t *Transport, key lane) error {
	for {
		g.mu.Lock()
		now := g.lanes[key]
		g.mu.Unlock()
		d := now.until.Sub(t.Opt.Clock.Now())
		if d <= 0 {
			return context.Cause(ctx)
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

// laneOf returns the lane of a request's hop.
func (t *Transport) laneOf(r *Request, u *url.URL) lane {
	if !t.Endpoint.Owns(u) {
		return lane{host: u.Host}
	}
	return lane{u.Host, t.caller, r.Lane}
}
