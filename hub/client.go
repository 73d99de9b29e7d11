package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
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
	OnWait        func(Wait)        // called before a pause of 5 s and more and every 30 s while it lasts, from any goroutine; must not block
	HTTPTransport http.RoundTripper // nil is HTTP/1.1 with proxies from the environment
	Clock         Clock             // nil is the system's
}

// Limits say how fast files travel, and when a slow or failing request is given up.
type Limits struct {
	LimitRate     int64         // file bytes per second, each direction, of all clients of the Governor together; 0 is no limit
	HeaderTimeout time.Duration // to an answer's headers; 0 is 30 s
	IdleTimeout   time.Duration // between two bytes, and over which the rate of a connection is judged; 0 is 30 s
}

// DefaultRangeBytes is what a Stream asks for at a time.
const DefaultRangeBytes = 8 << 20

// RangesAhead is how many ranges all Streams together fetch ahead: one for each transfer, and half as many again that are complete
// and wait for the reader while the lines stay busy.
const RangesAhead = Transfers + Transfers/2

// Client talks to one hub with one token. All methods may be called by many goroutines at once.
type Client struct {
	t     *transport
	cache *sharedCache
	files *downloads
	puts  slots                  // running uploads
	turns *turns                 // of the files to upload
	user  atomic.Pointer[string] // the answer of WhoAmI
}

// New checks the options. It makes no request.
func New(opt Options) (*Client, error) {
	endpoint, err := parseEndpoint(opt.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	if err := opt.complete(); err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	if opt.hasToken() && endpoint.Scheme == "http" && !isLoopback(endpoint.Hostname()) {
		opt.Log.Warn("the token travels without encryption", "endpoint", endpoint.String())
	}
	who := opt.Token
	if opt.Publisher != nil {
		who = opt.Publisher.Resource
	}
	t := &transport{opt: opt, endpoint: endpoint, lanes: lanes{endpoint, fingerprint(who)},
		jitter: rand.Float64}
	t.pauses = &pauses{clock: opt.Clock, onWait: opt.OnWait, waited: &t.stats.waited}
	t.login = &login{t: t, lock: make(lock, 1)}
	cache := &sharedCache{t: t, dir: opt.CacheDir}
	return &Client{t: t, cache: cache, files: newDownloads(t), puts: make(slots, opt.transfers()), turns: newTurns()}, nil
}

// complete fills in defaults and refuses what cannot work.
func (o *Options) complete() error {
	if o.Token != "" {
		o.TokenSource = cmp.Or(o.TokenSource, "the command line")
	}
	if o.Publisher != nil {
		o.TokenSource = "trusted publishing for " + o.Publisher.Resource
	}
	if !sendable(o.Token) {
		return fmt.Errorf("the token from %s holds blanks or characters that no token has", o.TokenSource)
	}
	if o.RangeBytes < 0 || o.BufferBytes < 0 || o.LimitRate < 0 {
		return errors.New("range, buffer and rate must not be negative")
	}
	o.RangeBytes = cmp.Or(o.RangeBytes, DefaultRangeBytes)
	o.BufferBytes = cmp.Or(o.BufferBytes, RangesAhead*o.RangeBytes)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, 30*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 30*time.Second)
	o.UserAgent = cmp.Or(o.UserAgent, "df11-convert")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Clock = cmp.Or[Clock](o.Clock, systemClock{})
	o.Governor = cmp.Or(o.Governor, NewGovernor())
	if o.HTTPTransport == nil {
		o.HTTPTransport = newRoundTripper(o.Governor)
	}
	return nil
}

// sendable says whether a token can be one.
func sendable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// newRoundTripper speaks HTTP/1.1 only: over HTTP/2 all ranges of a file would share one TCP connection, and one
// connection is what limits a CDN. Proxies come from the environment, custom CAs from SSL_CERT_FILE through Go itself.
func newRoundTripper(governor *Governor) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
		if !governor.answered.Load() {
			d.Timeout = firstContact
		}
		return d.DialContext(ctx, network, addr)
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dial,
		Protocols:           protocols,
		TLSHandshakeTimeout: 20 * time.Second,
		MaxIdleConns:        4 * Transfers,
		MaxIdleConnsPerHost: 2 * Transfers,
		IdleConnTimeout:     90 * time.Second,
	}
}

// Endpoint is the hub's address, without trailing slash.
func (c *Client) Endpoint() string { return c.t.endpoint.String() }

// Pause waits by the client's clock; the reason is told like that of any wait.
func (c *Client) Pause(ctx context.Context, reason string, d time.Duration) error {
	return c.t.pauses.pause(ctx, Wait{reason, d}, 0)
}

// Stats may be called at any time.
func (c *Client) Stats() Stats { return c.t.stats.snapshot() }
