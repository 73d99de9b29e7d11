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

// Governor slows all workers of all clients that share it: a limit that one of them is told holds
// for the others as well. Requests are sorted into lanes, one for each limit that a hub keeps. When
// an answer says that a limit is reached, its whole lane waits. A program has one Governor.
type Governor struct {
	answered atomic.Bool   // something has answered a request
	in, out  *rate.Limiter // of the file bytes of all clients; their burst is 0 without a limit

	mu    sync.Mutex
	lanes map[lane]pause
}

type pause struct {
	until  time.Time // nobody starts before
	reason string
}

// NewGovernor makes one that knows of no limit yet.
func NewGovernor() *Governor {
	return &Governor{lanes: map[lane]pause{},
		in: rate.NewLimiter(rate.Inf, 0), out: rate.NewLimiter(rate.Inf, 0)}
}

// limit bounds the file bytes of all clients in each direction; what a tenth of a second lets
// through may pass at once.
func (g *Governor) limit(bytesPerSecond int64) {
	for _, l := range []*rate.Limiter{g.in, g.out} {
		l.SetBurst(int(max(1, bytesPerSecond/10)))
		l.SetLimit(rate.Limit(bytesPerSecond))
	}
}

// wait blocks until a lane is open.
func (g *Governor) wait(ctx context.Context, t *Transport, key lane) error {
	for {
		g.mu.Lock()
		now := g.lanes[key]
		g.mu.Unlock()
		d := now.until.Sub(t.Opt.Clock.Now())
		if d <= 0 {
			return context.Cause(ctx)
		}
		if err := t.Pause(ctx, now.reason, d); err != nil {
			return err
		}
	}
}

// close keeps a lane closed until d from now, or as long as it is closed already.
func (g *Governor) close(now time.Time, key lane, d time.Duration, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := now.Add(d); until.After(g.lanes[key].until) {
		g.lanes[key] = pause{until, reason}
	}
}

// maxHeaderWait is the ceiling of a wait that the server asks for.
const maxHeaderWait = 10 * time.Minute

// observe reads the rate headers that come on every answer: when nothing is left, the lane waits
// before the hub has to refuse anything. A 429 is left to the retry loop, which closes the lane
// itself.
func (g *Governor) observe(now time.Time, key lane, resp *http.Response) {
	bucket, reset, empty := parseRateLimit(resp.Header)
	if !empty || reset == 0 || resp.StatusCode == http.StatusTooManyRequests {
		return
	}
	g.close(now, key, min(reset+time.Second, maxHeaderWait),
		"nothing left in the hub's rate bucket "+bucket)
}

// lane names the requests that one limit covers: a token's api calls, its file routes, what has a
// quota of its own by the hour, and every storage host, which knows neither caller nor kind.
type lane struct {
	host   string
	caller string // token or publisher
	kind   string // "api", "resolvers", "commit", "create"
}

// laneOf names the lane of a URL. Names of repos and files may look like any route, so that only
// places in it tell.
func (t *Transport) laneOf(u *url.URL) lane {
	if !t.Endpoint.Owns(u) {
		return lane{host: u.Host}
	}
	kind := "api"
	// one segment at least
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
