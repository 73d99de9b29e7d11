package wire

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// Options configure a client. The zero value reads public models from the public hub, without a
// cache.
type Options struct {
	Endpoint       string // "" is https://huggingface.co
	EndpointSource string // named in hints: "HF_ENDPOINT"; "" if the caller chose it
	Token          string // "" is anonymous
	TokenSource    string // named in errors: "HF_TOKEN", "file /home/me/.cache/huggingface/token"
	Login          string // what hints advise without a token; "" is to log in or set HF_TOKEN
	// returns the token of each request of a transport, for tokens that expire; nil for the one Token
	Tokens func(context.Context, *Transport) (string, error)
	// called once a request after the hub has refused a token. It reports whether Tokens has another
	// one now, or else what to do, if it knows; nil for no
	Refused   func(ctx context.Context, t *Transport, token string) (again bool, step hint.Hint)
	Offline   bool   // no HTTP at all; only the cache answers
	Side      string // "source" or "target": begins every error
	UserAgent string // "df11-convert/1.2.3"

	// file bytes per second in each direction, for all clients of the Governor together; 0 is no
	// limit
	LimitRate int64
	// until an answer's headers, and for judging a connection's rate; 0 is 30 s
	StallTimeout time.Duration
	// for all waits of one call together; 0 is 90 minutes
	Patience time.Duration

	Governor *Governor    // shared by a program's clients; nil makes one
	Log      *slog.Logger // nil discards
	// called before a wait of 5 s or more, once for everything that waits meanwhile, and before a
	// shorter one if there were many; must not block
	OnWait        func(Wait)
	HTTPTransport http.RoundTripper // nil is HTTP/1.1 with proxies from the environment
	Clock         Clock             // nil is the system's
}

// firstContact is how long a program tries to reach the hub at all. Usually there's no network, or
// a name is wrong, and people are waiting. Once the hub has answered anything, an outage is just a
// wait in hours of work.
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
	t := &Transport{Opt: opt, Endpoint: endpoint, caller: opt.Token, Jitter: rand.Float64}
	if opt.Tokens != nil {
		t.caller = opt.TokenSource
	}
	return t, nil
}

// With returns a transport with the connections, limits, and tokens of t, for a caller with another
// name, log, and OnWait. What it waits for is reported to that caller alone.
func (t *Transport) With(userAgent string, log *slog.Logger, onWait func(Wait)) *Transport {
	opt := t.Opt
	opt.OnWait = onWait
	opt.name(userAgent, log)
	return &Transport{Opt: opt, Endpoint: t.Endpoint, caller: t.caller, Jitter: t.Jitter}
}

// HasToken reports whether requests to the hub carry a token.
func (o *Options) HasToken() bool { return o.Token != "" || o.Tokens != nil }

// complete fills in defaults and refuses options that can't work.
func (o *Options) complete() error {
	if o.Token != "" {
		o.TokenSource = cmp.Or(o.TokenSource, "Options.Token")
	}
	if !Sendable(o.Token) {
		return fmt.Errorf("the token from %s holds spaces or other characters that no token has",
			o.TokenSource)
	}
	o.Patience = cmp.Or(o.Patience, maxWait)
	o.StallTimeout = cmp.Or(o.StallTimeout, 30*time.Second)
	o.name(o.UserAgent, o.Log)
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

// name sets what requests and logs are of, or the defaults.
func (o *Options) name(userAgent string, log *slog.Logger) {
	o.UserAgent = cmp.Or(userAgent, "df11-convert")
	o.Log = cmp.Or(log, slog.New(slog.DiscardHandler))
}

// Sendable reports whether a token has only characters that a header may carry, and no quotes,
// which belong to the file or the command that set it (RFC 6750, section 2.1, has the characters of
// a token).
func Sendable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) &&
		!strings.ContainsAny(token, "\"'")
}
