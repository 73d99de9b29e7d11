package wire

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
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
}

type pause struct {
	until  time.Time // no one starts before
	reason string
}

// NewGovernor returns a Governor without limits.
func NewGovernor() *Governor {
	return &Governor{lanes: map[lane]pause{},
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

// observe reads the rate headers of every answer. If nothing is left, the lane waits before the hub
// has to refuse anything. The retry loop closes the lane after a 429.
func (g *Governor) observe(now time.Time, key lane, resp *http.Response) {
	bucket, reset, empty := parseRateLimit(resp.Header)
	if !empty || reset == 0 || resp.StatusCode == http.StatusTooManyRequests {
		return
	}
	g.close(now, key, min(reset+time.Second, maxHeaderWait),
		"nothing left in the hub's rate bucket "+bucket)
}

// A lane is the requests that one limit covers: a token's API calls, its file routes, commits and
// new repos, which have hourly quotas, and each storage host, which knows neither caller nor kind.
type lane struct {
	host   string
	caller string // token or publisher
	kind   string // "api", "resolvers", "commit", "create"
}

// laneOf returns the lane of a URL. Repos and files may be named like any route, so only a
// segment's position counts.
func (t *Transport) laneOf(u *url.URL) lane {
	if !t.Endpoint.Owns(u) {
		return lane{host: u.Host}
	}
	kind := "api"
	// at least one segment
	route := strings.Split(strings.TrimPrefix(strings.TrimPrefix(u.Path, t.Endpoint.Path), "/"),
		"/")
	switch {
	case route[0] != "api" && slices.Contains(route[1:min(3, len(route))], "resolve"), // below name or ns/name
		route[0] == "api" && len(route) > 1 && route[1] == "resolve-cache":
		kind = "resolvers"
	case slices.Equal(route, []string{"api", "repos", "create"}):
		kind = "create"
	case len(route) > 5 && route[0] == "api" && route[1] == "models" && route[4] == "commit":
		// below ns/name
		kind = "commit"
	}
	return lane{u.Host, t.caller, kind}
}
