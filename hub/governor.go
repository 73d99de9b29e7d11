package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Governor slows all workers of all clients that share it: a limit that one of them is told holds for the others as
// well. Requests are sorted into lanes, one for each limit that a hub keeps: a token's api calls, its file routes, and
// every storage host. When an answer says that a limit is reached or near, its whole lane waits. A program has one
// Governor.
type Governor struct {
	answered atomic.Bool // something has answered a request

	mu    sync.Mutex
	lanes map[laneKey]*lane
	lines map[int64]*line
}

// laneKey names the requests that one limit covers. Caller and bucket are empty for a storage host, which knows neither.
type laneKey struct {
	host   string
	caller string // fingerprint of the token
	bucket string // "api", "resolvers", or what has a quota of its own: "commit", "create"
}

type lane struct {
	until  time.Time     // nobody starts before
	reason string        // of the latest wait
	gap    time.Duration // pace while little is left
	next   time.Time     // earliest start under the pace
	paceTo time.Time     // the pace ends when the window does
}

// line holds the throttles that all clients with the same LimitRate share.
type line struct{ in, out *throttle }

// NewGovernor makes one that knows of no limit yet.
func NewGovernor() *Governor {
	return &Governor{lanes: map[laneKey]*lane{}, lines: map[int64]*line{}}
}

func (g *Governor) lane(key laneKey) *lane {
	l := g.lanes[key]
	if l == nil {
		l = &lane{}
		g.lanes[key] = l
	}
	return l
}

func (g *Governor) line(clock Clock, rate int64) *line {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lines[rate]
	if l == nil {
		l = &line{&throttle{clock: clock, rate: rate}, &throttle{clock: clock, rate: rate}}
		g.lines[rate] = l
	}
	return l
}

// lanes sorts the requests of one client.
type lanes struct {
	endpoint endpoint
	caller   string // fingerprint of the token
}

// of names the lane of a URL. A hub counts by token and bucket.
func (l lanes) of(u *url.URL) laneKey {
	if !l.endpoint.owns(u) {
		return laneKey{host: u.Host}
	}
	bucket, route := "api", l.route(u)
	switch {
	case route[0] != "api" && slices.Contains(route[1:min(3, len(route))], "resolve"): // below name or ns/name
		bucket = "resolvers"
	case route[0] == "api" && len(route) > 1 && route[1] == "resolve-cache":
		bucket = "resolvers"
	}
	return laneKey{u.Host, l.caller, bucket}
}

// quota names the lane that a refusal without a bucket closes. Commits and new repos have quotas of their own, by the
// hour, that hold back nothing else.
func (l lanes) quota(u *url.URL) laneKey {
	key := l.of(u)
	switch route := l.route(u); {
	case key.bucket != "api":
	case slices.Equal(route, []string{"api", "repos", "create"}):
		key.bucket = "create"
	case len(route) > 5 && route[0] == "api" && route[1] == "models" && route[4] == "commit": // below ns/name
		key.bucket = "commit"
	}
	return key
}

// route gives the segments of a path on the hub, at least one. Names of repos and files may look like any route, so that
// only places in it tell.
func (l lanes) route(u *url.URL) []string {
	return strings.Split(strings.TrimPrefix(strings.TrimPrefix(u.Path, l.endpoint.Path), "/"), "/")
}

// fingerprint tells tokens apart without being one.
func fingerprint(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:8])
}

// wait blocks until the lanes are open, one after the other, and takes a place in the pace of each.
func (g *Governor) wait(ctx context.Context, p *pauses, keys ...laneKey) error {
	for _, key := range slices.Compact(keys) {
		for {
			d, reason := g.claim(p.clock.Now(), key)
			if d <= 0 {
				break
			}
			if err := p.sleep(ctx, Wait{Reason: reason, For: d, Shared: true}); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// claim gives 0 and takes the place, or the time to wait before asking again, with the reason.
func (g *Governor) claim(now time.Time, key laneKey) (time.Duration, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(key)
	if d := l.until.Sub(now); d > 0 {
		return d, l.reason
	}
	if l.gap <= 0 || !now.Before(l.paceTo) {
		return 0, ""
	}
	if d := l.next.Sub(now); d > 0 {
		return d, l.reason
	}
	l.next = now.Add(l.gap)
	return 0, ""
}

// pause closes a lane for d from now; a longer pause that runs already stays. It gives the Wait to tell, or none: workers
// that run into the same limit together prolong the pause by their jitter only, which is no news.
func (g *Governor) pause(now time.Time, key laneKey, d time.Duration, reason string) (news Wait) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(key)
	runs := l.until.After(now)
	extra := d
	if runs {
		extra = now.Add(d).Sub(l.until)
	}
	if extra > 0 {
		l.until, l.reason = now.Add(d), reason
	}
	if runs && extra < time.Second {
		return Wait{}
	}
	return Wait{Reason: reason, For: extra, Shared: true}
}

// Below a part of the quota, requests are spread over the rest of the window.
const (
	lowShare = 20 // one twentieth of the quota
	lowCount = 10 // where the quota is not told
)

// observe reads the rate headers that come on every answer, and slows the lane down before the hub has to refuse
// anything. A 429 is left to the retry loop, which pauses the lane itself. Like pause, it gives the Wait to tell.
func (g *Governor) observe(now time.Time, key laneKey, resp *http.Response) (news Wait) {
	state, ok := parseRateLimit(resp.Header)
	if !ok || resp.StatusCode == http.StatusTooManyRequests {
		return Wait{}
	}
	low := int64(lowCount)
	if quota := parseQuota(resp.Header); quota > 0 {
		low = max(quota/lowShare, 1)
	}
	if state.left == 0 && state.reset > 0 {
		return g.pause(now, key, min(state.reset+time.Second, maxHeaderWait), "nothing left in the hub's rate bucket "+state.bucket)
	}
	return g.pace(now, key, state, low)
}

// pace spreads the requests that are left over the time until the bucket fills again.
func (g *Governor) pace(now time.Time, key laneKey, s rateState, low int64) (news Wait) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(key)
	before := l.gap
	l.gap = 0
	if s.left <= low && s.reset > 0 {
		l.gap = s.reset / time.Duration(s.left+1)
		l.paceTo = now.Add(s.reset)
	}
	if before == 0 {
		l.next = now.Add(l.gap)
	}
	if !l.until.After(now) {
		l.reason = fmt.Sprintf("only %d requests left in the hub's rate bucket %s", s.left, s.bucket)
	}
	if before > 0 {
		return Wait{}
	}
	return Wait{Reason: l.reason, For: l.gap, Shared: true}
}
