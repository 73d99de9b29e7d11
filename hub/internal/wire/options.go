package wire

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
	"time"
)

// Options configure a client. The zero value reads public models from the public hub, without
// cache.
type Options struct {
	Endpoint    string // "" is https://huggingface.co
	Token       string // "" is anonymous
	TokenSource string // named in errors: "HF_TOKEN", "file /home/me/.cache/huggingface/token"
	Login       string // what hints advise where no token is set; "" is to set HF_TOKEN
	// gives the token of each request, for tokens that end; nil for the one Token
	Tokens    func(context.Context) (string, error)
	Offline   bool   // no HTTP at all; only the cache answers
	Side      string // "source" or "target": begins every error
	UserAgent string // "df11-convert/1.2.3"

	// file bytes per second, each direction, of all clients of the Governor together; 0 is no limit
	LimitRate int64
	// to an answer's headers, and over which the rate of a connection is judged; 0 is 30 s
	StallTimeout time.Duration

	Governor *Governor    // shared by the clients of a program; nil is one of its own
	Log      *slog.Logger // nil discards
	// called before a pause of 5 s or more, once for all that wait meanwhile; must not block
	OnWait        func(Wait)
	HTTPTransport http.RoundTripper // nil is HTTP/1.1 with proxies from the environment
	Clock         Clock             // nil is the system's
}

// firstContact is how long a program tries to reach the hub at all. Most often there is no network,
// or a name is wrong, and people wait for the answer. Once the hub has answered anything, its
// absence is a pause in hours of work.
const firstContact = 5 * time.Second

// New checks the settings. It makes no request.
func New(opt Options) (*Transport, error) {
	endpoint, err := parseEndpoint(opt.Endpoint)
	if err != nil {
		return nil, err
	}
	if err := opt.complete(); err != nil {
		return nil, err
	}
	if opt.HasToken() && endpoint.Scheme == "http" && !isLoopback(endpoint.Hostname()) {
		opt.Log.Warn("the token travels without encryption", "endpoint", endpoint.String())
	}
	t := &Transport{Opt: opt, Endpoint: endpoint, caller: opt.Token, Jitter: rand.Float64}
	if opt.Tokens != nil {
		t.caller = opt.TokenSource
	}
	return t, nil
}

// HasToken says whether the hub is asked with a token.
func (o *Options) HasToken() bool { return o.Token != "" || o.Tokens != nil }

// complete fills in defaults and refuses what cannot work.
func (o *Options) complete() error {
	if o.Token != "" {
		o.TokenSource = cmp.Or(o.TokenSource, "the command line")
	}
	if !Sendable(o.Token) {
		return fmt.Errorf("the token from %s holds blanks or characters that no token has",
			o.TokenSource)
	}
	if o.LimitRate < 0 {
		return errors.New("the rate must not be negative")
	}
	o.StallTimeout = cmp.Or(o.StallTimeout, 30*time.Second)
	o.UserAgent = cmp.Or(o.UserAgent, "df11-convert")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Clock = cmp.Or[Clock](o.Clock, systemClock{})
	o.Governor = cmp.Or(o.Governor, NewGovernor())
	if o.LimitRate > 0 {
		o.Governor.limit(o.LimitRate)
	}
	if o.HTTPTransport == nil {
		o.HTTPTransport = newRoundTripper(o.Governor)
	}
	return nil
}

// Sendable reports whether a token can be one.
func Sendable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
