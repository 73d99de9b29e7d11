package hubtest

import (
	"cmp"
	"slices"
	"time"
)

// Option changes a server before it starts.
type Option func(*config)

type config struct {
	Ways
	origin, cdnOrigin string
	clock             func() time.Time
	// by token; if empty, every token is tester's, who may do everything
	users         map[string]User
	publishers    map[string]string // GitHub repositories by resource
	lfsThreshold  int64
	multipartFrom int64
	chunkSize     int64
	pageSize      int
	limits        map[*Rule]int64 // instead of the rules' own
	linksForOnce  bool
	links         links
	latency       time.Duration
	dropUploads   bool
	pushDir       string
	xetHashes     bool
}

func defaultConfig() config {
	return config{
		clock:         time.Now,
		users:         map[string]User{},
		publishers:    map[string]string{},
		lfsThreshold:  10 << 20,
		multipartFrom: 64 << 20,
		chunkSize:     16_000_000, // the real hub's size
		pageSize:      1000,
		limits:        map[*Rule]int64{},
	}
}

// WithClock sets the clock for expiring tokens and for commit dates.
func WithClock(now func() time.Time) Option { return func(c *config) { c.clock = now } }

// InMemory makes a server that doesn't listen, of two origins. Requests come through
// [Server.RoundTrip].
func InMemory(url, cdnURL string) Option {
	return func(c *config) { c.origin, c.cdnOrigin = url, cdnURL }
}

// WithUser makes token valid for u. Without this option every non-empty token is valid and may do
// everything, as the user tester.
func WithUser(token string, u User) Option { return func(c *config) { c.users[token] = u } }

// WithLFSThreshold sets the size in bytes from which preupload asks for LFS whatever the file's
// name and content (default 10 MiB).
func WithLFSThreshold(nBytes int64) Option { return func(c *config) { c.lfsThreshold = nBytes } }

// WithMultipart makes uploads of at least from bytes multipart, in parts of chunk bytes (default:
// 64 MiB, 16,000,000).
func WithMultipart(from, chunk int64) Option {
	return func(c *config) { c.multipartFrom, c.chunkSize = from, chunk }
}

// WithLimit changes the number of one of the [Rules], by its name.
func WithLimit(name string, n int64) Option {
	at := slices.IndexFunc(Rules, func(r *Rule) bool { return r.Name == name && r.Limit > 0 })
	if at < 0 {
		panic("hubtest: no rule " + name + " with a number")
	}
	return func(c *config) { c.limits[Rules[at]] = n }
}

// limit returns the number of a rule.
func (c *config) limit(r *Rule) int64 { return cmp.Or(c.limits[r], r.Limit) }

// WithPageSize sets the number of tree entries and commits on a page (default 1000).
func WithPageSize(n int) Option { return func(c *config) { c.pageSize = n } }

// WithLinksForOnce makes each signed URL serve one request. Without this option, a URL serves any
// number until its time is over.
func WithLinksForOnce() Option { return func(c *config) { c.linksForOnce = true } }

// WithLinkSpeed limits all answers together to down bytes per second and all request bodies
// together to up; 0 is no limit.
func WithLinkSpeed(down, up int64) Option {
	return func(c *config) { c.links = links{newLink(down), newLink(up)} }
}

// WithLatency makes every request wait before it's served, as the way there and back does.
func WithLatency(d time.Duration) Option { return func(c *config) { c.latency = d } }

// Unlimit ends [WithLinkSpeed] and [WithLatency] for the requests to come.
func (s *Server) Unlimit() { s.near.Store(true) }

// WithXetHashes adds xetHash to tree entries of large files, which the copy route then insists on
// (otherwise it takes any hash), and X-Xet-Hash and its links to their downloads. It does nothing
// else of Xet.
func WithXetHashes() Option { return func(c *config) { c.xetHashes = true } }

// WithDropUploads hashes uploaded large files and drops their bytes. Size and SHA-256 stay, and a
// download answers 410.
func WithDropUploads() Option { return func(c *config) { c.dropUploads = true } }

// WithPushDir writes every commit to a main branch to root/<namespace>/<name>/, each file by
// rename. The folder must exist.
func WithPushDir(root string) Option { return func(c *config) { c.pushDir = root } }
