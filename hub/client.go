package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// The defaults of a stream.
const (
	DefaultRangeBytes = 8 << 20 // per request
	// RangesAhead is how many ranges all streams together fetch ahead: one for each transfer, and
	// half as many again that are complete, so that connections stay busy while the reader catches
	// up.
	RangesAhead = maxTransfers + maxTransfers/2
)

// Options configure a Client. The zero value reads public models from the public hub, without a
// cache.
type Options struct {
	Connection
	Publisher *Publisher // gets tokens that expire, instead of Token; nil for none
	// TokenFile is where Token comes from, if hf auth login may have stored it there. The client
	// renews it as the Python client does. "" for none
	TokenFile  string
	CacheDir   string // shared cache to read first; "" for none
	RangeBytes int64  // bytes per ranged GET of a stream; 0 is DefaultRangeBytes
	// bytes that all streams fetch ahead; 0 is RangesAhead × RangeBytes. Fewer ranges mean fewer
	// transfers
	BufferBytes int64
}

// Format writes the options without their secrets.
func (o Options) Format(w fmt.State, verb rune) {
	hidden, publisher := o.Connection.hidden(), ""
	if o.Publisher != nil {
		publisher = o.Publisher.Resource
	}
	fmt.Fprintf(w, fmt.FormatString(w, verb), struct {
		Connection                     bare
		Publisher, TokenFile, CacheDir string
		RangeBytes, BufferBytes        int64
	}{hidden, publisher, o.TokenFile, o.CacheDir, o.RangeBytes, o.BufferBytes})
}

// LogValue returns the options without their secrets.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", o)) }

// A Client talks to one hub with one token. Make it with [New]. Many goroutines may call its
// methods at once. Their contexts must not be nil.
type Client struct {
	t     *transport
	cache *sharedCache
	files *downloads
	said  *answers
	puts  *semaphore.Weighted      // running uploads
	turns *turns                   // of the files to upload
	last  atomic.Pointer[RepoInfo] // the last answer of Info
	only  string                   // the one repo it can write to; "" if unknown
	// of what was uploaded, by SHA-256: the repo may get another name meanwhile
	samples sync.Map
	// a repo of which Info knew only some files
	unlisted atomic.Pointer[RepoInfo]
}

// A Call is what belongs to one user of a Client: who asks, who hears of it, and how much memory it
// may take. The members are those of [Options] and [Connection].
type Call struct {
	UserAgent               string
	Log                     *slog.Logger
	OnWait                  func(Wait)
	RangeBytes, BufferBytes int64
}

// answers are what a hub has said to all clients of one [New].
type answers struct {
	owner     atomic.Pointer[owner] // whose token it is; nil until the hub has said so
	asked     sync.Once             // whose it is, for a hint
	locations sync.Map              // of *location by repo, commit, and path
}

// New checks the options. It makes no request.
func New(opt Options) (*Client, error) {
	l := &login{Publisher: opt.Publisher, lock: semaphore.NewWeighted(1)}
	if l.Publisher != nil {
		opt.Token, opt.TokenSource = "", "trusted publishing for "+l.Resource
	}
	t, err := newTransport(opt.Connection)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	if l.Publisher != nil {
		t.tokens = l.token
	}
	if opt.TokenFile != "" && opt.Publisher == nil && opt.Token != "" {
		f := &tokenFile{path: opt.TokenFile, now: opt.Token, lock: semaphore.NewWeighted(1)}
		t.tokens, t.refused = f.token, f.refused
	}
	only := ""
	if opt.Publisher != nil && opt.Publisher.ForRepo() {
		only = opt.Publisher.Resource
	}
	return newClient(t, opt.CacheDir, only, new(answers), opt.RangeBytes, opt.BufferBytes)
}

// With returns a client for another call. It shares connections, the token, the Governor, and what
// the hub has said with c. Waits are reported to the call alone, and its streams and uploads have
// buffers and transfers of their own, within its BufferBytes.
func (c *Client) With(call Call) (*Client, error) {
	return newClient(c.t.with(call), c.cache.dir, c.only, c.said, call.RangeBytes,
		call.BufferBytes)
}

func newClient(t *transport, cacheDir, only string, said *answers, rangeBytes,
	bufferBytes int64) (*Client, error) {
	if rangeBytes < 0 || bufferBytes < 0 {
		return nil, errors.New("hub: bytes of ranges and buffers can't be negative")
	}
	rangeBytes = cmp.Or(rangeBytes, DefaultRangeBytes)
	bufferBytes = cmp.Or(bufferBytes, RangesAhead*rangeBytes)
	transfers := min(maxTransfers, max(1, bufferBytes/rangeBytes))
	return &Client{
		t: t, cache: &sharedCache{t: t, dir: cacheDir}, said: said, only: only,
		files: newDownloads(t, &said.locations, rangeBytes, bufferBytes/rangeBytes, transfers),
		puts:  semaphore.NewWeighted(transfers), turns: newTurns(transfers),
	}, nil
}

// Endpoint returns the hub's address, without a trailing slash.
func (c *Client) Endpoint() string { return c.t.endpoint.String() }

// CloseIdle closes the connections that no request uses. The client can go on.
func (c *Client) CloseIdle() { c.t.closeIdle() }

// Pause waits by the client's clock, and reports a long wait with its reason.
func (c *Client) Pause(ctx context.Context, reason string, d time.Duration) error {
	return c.t.pause(ctx, c.t.endpoint.Host, reason, d)
}

// OnlyRepo returns the one repo that the client's token can write to, or "" if unknown.
func (c *Client) OnlyRepo() string { return c.only }

// Offline reports whether the client asks no Hub, and answers from the shared cache.
func (c *Client) Offline() bool { return c.t.opt.Offline }
