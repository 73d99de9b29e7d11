package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Settings are what is to be known of a hub and its client before anything is asked.
type Settings struct {
	Endpoint    string     // "" is https://huggingface.co
	Token       string     // "" is anonymous
	TokenSource string     // named in errors
	Publisher   *Publisher // gets tokens that end, in place of Token; nil for none
	Offline     bool       // no HTTP at all
	Side        string     // "source" or "target": begins every error
	UserAgent   string
	Limits

	Governor      *Governor         // nil is one of its own
	Log           *slog.Logger      // nil discards
	OnWait        func(Wait)        // nil for nobody
	HTTPTransport http.RoundTripper // nil is HTTP/1.1 with proxies from the environment
	Clock         Clock             // nil is the system's
}

// Publisher is a job of a CI system that a hub trusts instead of a stored token. Its identity is a token that the CI signs and
// that lasts for minutes. It is exchanged (RFC 8693) for a token of the hub that lasts for an hour, again and again as long as
// the job runs.
type Publisher struct {
	Resource string // ns/name: a repo to write to, and nothing else; or a user, whose gated repos can be read
	// Identity is such a token, made beforehand; "" asks GitHub for one each time, at RequestURL with RequestToken.
	Identity, RequestURL, RequestToken string
}

// ForRepo says whether the tokens are for a repo, and not for what a user may read.
func (p *Publisher) ForRepo() bool { return strings.Contains(p.Resource, "/") }

// Limits say how fast files travel, and when a slow or failing request is given up.
type Limits struct {
	LimitRate     int64         // file bytes per second, each direction, of all clients of the Governor together; 0 is no limit
	HeaderTimeout time.Duration // to an answer's headers; 0 is 30 s
	IdleTimeout   time.Duration // between two bytes, and over which the rate of a connection is judged; 0 is 30 s
}

// firstContact is how long a program tries to reach the hub at all. Most often there is no network, or a name is wrong, and
// people wait for the answer. Once the hub has answered anything, its absence is a pause in hours of work.
const firstContact = 5 * time.Second

// HasToken says whether the hub is asked with a token.
func (o *Settings) HasToken() bool { return o.Token != "" || o.Publisher != nil }

// complete fills in defaults and refuses what cannot work.
func (o *Settings) complete() error {
	if o.Token != "" {
		o.TokenSource = cmp.Or(o.TokenSource, "the command line")
	}
	if o.Publisher != nil {
		o.TokenSource = "trusted publishing for " + o.Publisher.Resource
	}
	if !sendable(o.Token) {
		return fmt.Errorf("the token from %s holds blanks or characters that no token has", o.TokenSource)
	}
	if o.LimitRate < 0 {
		return errors.New("the rate must not be negative")
	}
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
