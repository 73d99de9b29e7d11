package hub

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// The defaults of a stream.
const (
	DefaultRangeBytes = 8 << 20 // per request
	// RangesAhead is how many ranges all streams together fetch ahead: one for each transfer, and
	// half as many again that are complete, so that connections stay busy while the reader catches
	// up.
	RangesAhead = wire.Transfers + wire.Transfers/2
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

type (
	// Connection says which hub to ask, how, and as whom.
	Connection = wire.Options
	// Governor slows all clients that share it.
	Governor = wire.Governor
	// Wait is a wait that people should hear of.
	Wait = wire.Wait
	// Clock returns the time and waits.
	Clock = wire.Clock
)

// NewGovernor returns a Governor without limits.
func NewGovernor() *Governor { return wire.NewGovernor() }

// A Client talks to one hub with one token. Many goroutines may call its methods at once.
type Client struct {
	t     *wire.Transport
	cache *sharedCache
	files *downloads
	puts  *semaphore.Weighted      // running uploads
	turns turns                    // of the files to upload
	user  atomic.Pointer[string]   // the answer of WhoAmI
	seen  sync.Map                 // answers of Peek, by repo and revision
	last  atomic.Pointer[RepoInfo] // the last answer of Info
	only  string                   // the one repo it can write to; "" if unknown
	// of what was uploaded, by sampleKey
	samples sync.Map
}

// New checks the options. It makes no request.
func New(opt Options) (*Client, error) {
	opt.RangeBytes = cmp.Or(opt.RangeBytes, DefaultRangeBytes)
	opt.BufferBytes = cmp.Or(opt.BufferBytes, RangesAhead*opt.RangeBytes)
	l := &login{Publisher: opt.Publisher, lock: semaphore.NewWeighted(1)}
	if l.Publisher != nil {
		opt.Token, opt.TokenSource, opt.Tokens = "", "trusted publishing for "+l.Resource, l.token
	}
	t, err := wire.New(opt.Connection)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	l.t = t
	if opt.TokenFile != "" && opt.Publisher == nil && opt.Token != "" {
		f := &tokenFile{t: t, path: opt.TokenFile, now: opt.Token, lock: semaphore.NewWeighted(1)}
		t.Opt.Tokens, t.Opt.Refused = f.token, f.refused
	}
	transfers := min(wire.Transfers, max(1, opt.BufferBytes/opt.RangeBytes))
	c := &Client{
		t: t, cache: &sharedCache{t: t, dir: opt.CacheDir}, files: newDownloads(t, opt, transfers),
		puts: semaphore.NewWeighted(transfers), turns: turns{files: semaphore.NewWeighted(allTurns)},
	}
	if opt.Publisher != nil && opt.Publisher.ForRepo() {
		c.only = opt.Publisher.Resource
	}
	return c, nil
}

// Endpoint returns the hub's address, without a trailing slash.
func (c *Client) Endpoint() string { return c.t.Endpoint.String() }

// Pause waits by the client's clock, and reports a long wait with its reason.
func (c *Client) Pause(ctx context.Context, reason string, d time.Duration) error {
	return c.t.Pause(ctx, c.t.Endpoint.Host, reason, d)
}

// OnlyRepo returns the one repo that the client's token can write to, or "" if unknown.
func (c *Client) OnlyRepo() string { return c.only }

// Offline reports whether the client asks no Hub, and answers from the shared cache.
func (c *Client) Offline() bool { return c.t.Opt.Offline }

// Error is a failed request: what was asked, and what came back.
type Error = wire.Error

// EndpointError says that [Options.Endpoint] isn't an address on the web.
type EndpointError = wire.EndpointError

// The sentinels are the kinds of failures. Test for them with errors.Is.
var (
	ErrNotFound         = wire.ErrNotFound
	ErrRevisionNotFound = wire.ErrRevisionNotFound
	ErrEntryNotFound    = wire.ErrEntryNotFound
	ErrUnauthorized     = wire.ErrUnauthorized
	ErrGated            = wire.ErrGated
	ErrForbidden        = wire.ErrForbidden
	ErrQuota            = wire.ErrQuota
	ErrDisabled         = wire.ErrDisabled
	ErrCard             = wire.ErrCard
	ErrTooMany          = wire.ErrTooMany
	ErrRateLimited      = wire.ErrRateLimited
	ErrOffline          = wire.ErrOffline
	ErrChanged          = wire.ErrChanged
	ErrCorrupt          = wire.ErrCorrupt
	ErrConflict         = wire.ErrConflict
	ErrMissingObject    = wire.ErrMissingObject
	ErrUnsafePath       = wire.ErrUnsafePath
	ErrNotHub           = wire.ErrNotHub
	ErrTrustedPublisher = wire.ErrTrustedPublisher
)

// Culprit says what a failure is about, if it says nothing about the repo that was asked for: "the
// network", "the Hub", or "the token". Otherwise it returns "".
func Culprit(err error) string { return wire.Culprit(err) }

// Hint returns the next step for the user in one or two sentences, or "" if there is none.
func Hint(err error) string { return wire.Hint(err) }
