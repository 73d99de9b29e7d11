package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// Options configure a Client. The zero value reads public models from the public hub, without cache.
type Options struct {
	Endpoint    string     // "" is https://huggingface.co
	Token       string     // "" is anonymous
	TokenSource string     // named in errors: "HF_TOKEN", "file /home/me/.cache/huggingface/token"
	Publisher   *Publisher // gets tokens that end, in place of Token; nil for none
	CacheDir    string     // shared cache to read first; "" for none
	Offline     bool       // no HTTP at all; only the cache answers
	Side        string     // "source" or "target": begins every error
	UserAgent   string     // "df11-convert/1.2.3"

	RangeBytes  int64 // bytes per ranged GET of a Stream; 0 is DefaultRangeBytes
	BufferBytes int64 // bytes that all Streams together fetch ahead; 0 is RangesAhead × RangeBytes. Fewer ranges are fewer transfers
	Limits

	Governor      *Governor         // shared by the clients of a program; nil is one of its own
	Log           *slog.Logger      // nil discards
	OnWait        func(Wait)        // called before a pause of 5 s or more, and every 30 s while it lasts; must not block
	HTTPTransport http.RoundTripper // nil is HTTP/1.1 with proxies from the environment
	Clock         Clock             // nil is the system's
}

// DefaultRangeBytes is what a Stream asks for at a time.
const DefaultRangeBytes = 8 << 20

// RangesAhead is how many ranges all Streams together fetch ahead: one for each transfer, and half as many again that are complete
// and wait for the reader while the lines stay busy.
const RangesAhead = wire.Transfers + wire.Transfers/2

type (
	// Governor slows all clients that share it.
	Governor = wire.Governor
	// Limits say how fast files travel, and when a request is given up.
	Limits = wire.Limits
	// Publisher gets tokens by trusted publishing.
	Publisher = wire.Publisher
	// Wait is a pause that people should hear of.
	Wait = wire.Wait
	// Clock tells the time, and waits.
	Clock = wire.Clock
	// Stats tell what a client has done so far.
	Stats = wire.Stats
)

// NewGovernor makes one that knows of no limit yet.
func NewGovernor() *Governor { return wire.NewGovernor() }

// Client talks to one hub with one token. All methods may be called by many goroutines at once.
type Client struct {
	t     *wire.Transport
	cache *sharedCache
	files *downloads
	puts  wire.Slots             // running uploads
	turns turns                  // of the files to upload
	user  atomic.Pointer[string] // the answer of WhoAmI
}

// New checks the options. It makes no request.
func New(opt Options) (*Client, error) {
	if opt.RangeBytes < 0 || opt.BufferBytes < 0 {
		return nil, errors.New("hub: range and buffer must not be negative")
	}
	opt.RangeBytes = cmp.Or(opt.RangeBytes, DefaultRangeBytes)
	opt.BufferBytes = cmp.Or(opt.BufferBytes, RangesAhead*opt.RangeBytes)
	transfers := int(min(wire.Transfers, max(1, opt.BufferBytes/opt.RangeBytes)))
	t, err := wire.New(wire.Settings{
		Endpoint: opt.Endpoint, Token: opt.Token, TokenSource: opt.TokenSource, Publisher: opt.Publisher,
		Offline: opt.Offline, Side: opt.Side, UserAgent: opt.UserAgent, Limits: opt.Limits,
		Governor: opt.Governor, Log: opt.Log, OnWait: opt.OnWait, HTTPTransport: opt.HTTPTransport, Clock: opt.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	return &Client{
		t: t, cache: &sharedCache{t: t, dir: opt.CacheDir}, files: newDownloads(t, transfers, opt.RangeBytes, opt.BufferBytes),
		puts: make(wire.Slots, transfers), turns: turns{files: semaphore.NewWeighted(allTurns)},
	}, nil
}

// Endpoint is the hub's address, without trailing slash.
func (c *Client) Endpoint() string { return c.t.Endpoint.String() }

// Pause waits by the client's clock; the reason is told like that of any wait.
func (c *Client) Pause(ctx context.Context, reason string, d time.Duration) error {
	return c.t.Pause(ctx, reason, d)
}

// Stats may be called at any time.
func (c *Client) Stats() Stats { return c.t.Stats() }

// OnlyRepo is the one repo that the client's token can write to; "" if it is not known to be one.
func (c *Client) OnlyRepo() string {
	if p := c.t.Opt.Publisher; p != nil && p.ForRepo() {
		return p.Resource
	}
	return ""
}
