package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options configure a Client. The zero value reads public models from the
// public hub, without cache.
type Options struct {
	Endpoint    string // "" is https://huggingface.co
	Token       string // "" is anonymous
	TokenSource string // named in errors: "HF_TOKEN", "file /home/me/.cache/huggingface/token"
	CacheDir    string // shared cache to read first; "" for none
	Offline     bool   // no HTTP at all; only the cache answers
	Side        string // "source" or "target": begins every error
	UserAgent   string // "df11-convert/1.2.3"

	Connections int   // file transfers at once, each direction; 0 is 8
	RangeBytes  int64 // bytes per ranged GET of a Stream; 0 is 16 MiB
	BufferBytes int64 // bytes that all Streams together fetch ahead; 0 is Connections × RangeBytes
	LimitRate   int64 // file bytes per second, each direction, of all clients of the Governor together; 0 is no limit

	Tries         int           // per request without progress; 0 is 8
	MaxWait       time.Duration // all waits of one call; 0 is 90 min
	HeaderTimeout time.Duration // to an answer's headers; 0 is 30 s
	IdleTimeout   time.Duration // between two bytes; 0 is 30 s
	RateWindow    time.Duration // over which MinRate is judged; 0 is 30 s
	MinRate       int64         // bytes per second of one connection below which it is given up; 0 is 1024, negative is none

	Governor      *Governor         // shared by the clients of a program; nil is one of its own
	Log           *slog.Logger      // nil discards
	OnWait        func(Wait)        // called before each pause, from any goroutine; must not block
	HTTPTransport http.RoundTripper // nil is HTTP/1.1 with proxies from the environment
	Clock         Clock             // nil is the system's
}

// Client talks to one hub with one token. All methods may be called by many
// goroutines at once.
type Client struct {
	opt Options
	t   *transport

	conns     chan struct{} // one token per running download
	puts      chan struct{} // one token per running upload
	buffers   chan []byte   // shared fetch-ahead buffers; nil ones are not yet made
	mu        sync.Mutex
	locations map[locationKey]*location
	spoiled   map[string]bool // files of the shared cache that are not what was published
	user      *User           // the answer of WhoAmI
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
	line := opt.Governor.line(opt.Clock, opt.LimitRate)
	t := &transport{
		endpoint: endpoint, rt: opt.HTTPTransport, token: opt.Token, tokenSource: opt.TokenSource, side: opt.Side,
		userAgent: opt.UserAgent, offline: opt.Offline, log: opt.Log, clock: opt.Clock, jitter: rand.Float64,
		tries: opt.Tries, maxWait: opt.MaxWait, onWait: opt.OnWait,
		timeouts: timeouts{header: opt.HeaderTimeout, idle: opt.IdleTimeout, window: opt.RateWindow, minRate: opt.MinRate},
		gov:      opt.Governor, caller: fingerprint(opt.Token),
	}
	t.in, t.out = line.in, line.out
	if opt.Token != "" && endpoint.Scheme == "http" && !isLoopback(endpoint.Hostname()) {
		opt.Log.Warn("the token travels without encryption", "endpoint", endpoint.String())
	}
	c := &Client{opt: opt, t: t, locations: map[locationKey]*location{}, spoiled: map[string]bool{}}
	c.conns = make(chan struct{}, opt.Connections)
	c.puts = make(chan struct{}, opt.Connections)
	c.buffers = make(chan []byte, opt.BufferBytes/opt.RangeBytes)
	for range cap(c.buffers) {
		c.buffers <- nil
	}
	return c, nil
}

// complete fills in defaults and refuses what cannot work.
func (o *Options) complete() error {
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("the token from %s holds blanks or characters that no token has", o.source())
	}
	if o.Token != "" {
		o.TokenSource = o.source()
	}
	if o.Connections < 0 || o.RangeBytes < 0 || o.BufferBytes < 0 || o.LimitRate < 0 || o.Tries < 0 {
		return errors.New("connections, range, buffer, rate and tries must not be negative")
	}
	o.Connections = orDefault(o.Connections, 8)
	o.RangeBytes = orDefault(o.RangeBytes, 16<<20)
	o.BufferBytes = orDefault(o.BufferBytes, int64(o.Connections)*o.RangeBytes)
	o.Tries = orDefault(o.Tries, defaultTries)
	o.MaxWait = orDefault(o.MaxWait, defaultMaxWait)
	o.HeaderTimeout = orDefault(o.HeaderTimeout, 30*time.Second)
	o.IdleTimeout = orDefault(o.IdleTimeout, 30*time.Second)
	o.RateWindow = orDefault(o.RateWindow, 30*time.Second)
	o.MinRate = orDefault(o.MinRate, 1024)
	o.UserAgent = orDefault(o.UserAgent, "df11-convert")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Governor == nil {
		o.Governor = NewGovernor()
	}
	if o.HTTPTransport == nil {
		o.HTTPTransport = newRoundTripper(o.Connections)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (o *Options) source() string { return orDefault(o.TokenSource, "the command line") }

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// newRoundTripper speaks HTTP/1.1 only: over HTTP/2 all ranges of a file would
// share one TCP connection, and one connection is what limits a CDN. Proxies
// come from the environment, custom CAs from SSL_CERT_FILE through Go itself.
func newRoundTripper(connections int) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		Protocols:           protocols,
		TLSHandshakeTimeout: 20 * time.Second,
		MaxIdleConns:        4 * connections,
		MaxIdleConnsPerHost: 2 * connections,
		IdleConnTimeout:     90 * time.Second,
		ReadBufferSize:      128 << 10,
		WriteBufferSize:     128 << 10,
	}
}

// Endpoint is the hub's address, without trailing slash.
func (c *Client) Endpoint() string { return c.t.endpoint.String() }

// Now is the time by the client's clock.
func (c *Client) Now() time.Time { return c.t.clock.Now() }

// Pause waits by the client's clock; the reason is told like that of any wait.
func (c *Client) Pause(ctx context.Context, reason string, d time.Duration) error {
	return c.t.pause(ctx, reason, d)
}

// maxJSON caps an API answer; the largest trees stay far below.
const maxJSON = 128 << 20

// maxIgnored caps an answer of which only the status counts.
const maxIgnored = 1 << 20

// call makes one API request with retries and decodes its JSON answer into
// out, unless out is nil. It gives the answer's headers.
func (c *Client) call(ctx context.Context, r *request, out any) (http.Header, error) {
	return c.callAnd(ctx, r, out, func() error { return nil })
}

// callAnd is call for an answer 200 that can be a refusal all the same: check
// looks at out, and its error is repeated like any other.
func (c *Client) callAnd(ctx context.Context, r *request, out any, check func() error) (http.Header, error) {
	var header http.Header
	err := c.t.retry(ctx, r, func(ctx context.Context, _ *progress) error {
		resp, err := c.t.exchange(ctx, r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		header = resp.Header
		if err := c.decode(r, resp, out); err != nil {
			return err
		}
		return check()
	})
	return header, err
}

func (c *Client) decode(r *request, resp *http.Response, out any) error {
	if out == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, maxIgnored) // lets the connection be used again
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxJSON+1))
	if err != nil {
		return c.t.failure(r, resp.Request.URL, err)
	}
	if len(body) > maxJSON {
		return c.t.failure(r, resp.Request.URL, ErrTooLarge)
	}
	return c.t.unmarshal(r, resp, body, out)
}

// unmarshal tells a body that was cut, which is worth a repeat, from one that
// no hub would send.
func (t *transport) unmarshal(r *request, resp *http.Response, body []byte, out any) error {
	err := json.Unmarshal(body, out)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset >= int64(len(body)) {
		return t.failure(r, resp.Request.URL, fmt.Errorf("answer is cut: %w", io.ErrUnexpectedEOF))
	}
	return t.failure(r, resp.Request.URL, fmt.Errorf("%w: %w", ErrNotHub, err))
}

// get is the request for an API read.
func (c *Client) get(op, repo, url string) *request {
	return &request{op: op, repo: repo, method: http.MethodGet, url: url, token: true}
}

// send is the request for an API call with a JSON body.
func (c *Client) send(op, repo, method, url string, body any) *request {
	data, err := json.Marshal(body)
	if err != nil {
		panic("hub: internal error: " + err.Error()) // bodies are made of strings and numbers
	}
	return &request{op: op, repo: repo, method: method, url: url, token: true, follow: followSame,
		header: http.Header{"Content-Type": {"application/json"}},
		body:   func() io.Reader { return bytes.NewReader(data) }, size: int64(len(data))}
}
