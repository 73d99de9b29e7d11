package hub

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// A Connection says which hub to ask, how, and as whom.
type Connection struct {
	Endpoint       string // "" is https://huggingface.co
	EndpointSource string // named in hints: "HF_ENDPOINT"; "" if the caller chose it
	Token          string // "" is anonymous
	TokenSource    string // named in errors: "HF_TOKEN", "file /home/me/.cache/huggingface/token"
	Login          string // what hints advise without a token; "" is to log in or set HF_TOKEN
	Offline        bool   // no HTTP at all; only the cache answers
	Side           string // "source" or "target": begins every error
	UserAgent      string // "df11-convert/1.2.3"

	// file bytes per second in each direction, for all clients of the Governor together; 0 is no
	// limit
	LimitRate int64
	// until an answer's headers, and for judging a connection's rate; 0 is 30 s
	StallTimeout time.Duration
	// for all waits of one call together; 0 is 90 minutes
	Patience time.Duration

	Governor *Governor    // shared by a program's clients; nil makes one
	Log      *slog.Logger // nil discards
	// called before a wait of 5 s or more, once for everything that waits meanwhile; must not block
	OnWait        func(Wait)
	HTTPTransport http.RoundTripper // nil is HTTP/1.1 with proxies from the environment
	Clock         Clock             // nil is the system's
}

// bare is a Connection that's written as it is.
type bare Connection

// hidden returns the connection without its token.
func (c Connection) hidden() bare {
	if c.Token != "" {
		c.Token = "(hidden)"
	}
	return bare(c)
}

// Format writes the connection without its token.
func (c Connection) Format(w fmt.State, verb rune) {
	fmt.Fprintf(w, fmt.FormatString(w, verb), c.hidden())
}

// LogValue returns the connection without its token.
func (c Connection) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", c)) }

// options returns the connection as the transport takes it.
func (c *Connection) options() wire.Options {
	opt := wire.Options{Endpoint: c.Endpoint, EndpointSource: c.EndpointSource, Token: c.Token, TokenSource: c.TokenSource,
		Login: c.Login, Offline: c.Offline, Side: c.Side, UserAgent: c.UserAgent,
		LimitRate: c.LimitRate, StallTimeout: c.StallTimeout, Patience: c.Patience, Log: c.Log,
		HTTPTransport: c.HTTPTransport}
	if c.Governor != nil {
		opt.Governor = c.Governor.shared
	}
	if c.OnWait != nil {
		opt.OnWait = func(w wire.Wait) { c.OnWait(Wait(w)) }
	}
	if c.Clock != nil {
		opt.Clock = c.Clock
	}
	return opt
}

// A Governor slows all clients that share it: a limit that one of them hits holds for the others
// too. A program has one Governor.
type Governor struct{ shared *wire.Governor }

// NewGovernor returns a Governor without limits.
func NewGovernor() *Governor { return &Governor{wire.NewGovernor()} }

// A Wait is long enough that people wonder. Connection.OnWait reports it.
type Wait struct {
	Host   string        // the Hub or its storage
	Reason string        // "rate limit of bucket api reached", "503 Service Unavailable"
	For    time.Duration // from now on
}

// A Clock returns the time and waits. Many goroutines call both methods at once. Sleep returns the
// cause of ctx as soon as ctx ends.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}
