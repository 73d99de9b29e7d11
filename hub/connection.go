package hub

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
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
	// called before a wait of 5 s or more, once for everything that waits meanwhile, and before a
	// shorter one if there were many; must not block
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

// complete fills in defaults and refuses settings that can't work.
func (c *Connection) complete() error {
	if c.Token != "" {
		c.TokenSource = cmp.Or(c.TokenSource, "Options.Token")
	}
	if !sendable(c.Token) {
		return fmt.Errorf("the token from %s holds spaces or other characters that no token has",
			c.TokenSource)
	}
	c.Patience = cmp.Or(c.Patience, maxWait)
	c.StallTimeout = cmp.Or(c.StallTimeout, 30*time.Second)
	c.name(c.UserAgent, c.Log)
	c.Clock = cmp.Or[Clock](c.Clock, systemClock{})
	c.Governor = cmp.Or(c.Governor, NewGovernor())
	if c.LimitRate > 0 {
		c.Governor.limit(c.LimitRate)
	}
	if c.HTTPTransport == nil {
		c.HTTPTransport = newRoundTripper(c.Governor)
	}
	return nil
}

// name sets what requests and logs are of, or the defaults.
func (c *Connection) name(userAgent string, log *slog.Logger) {
	c.UserAgent = cmp.Or(userAgent, "df11-convert")
	c.Log = cmp.Or(log, slog.New(slog.DiscardHandler))
}

// sendable reports whether a token has only characters that a header may carry, and no quotes,
// which belong to the file or the command that set it (RFC 6750, section 2.1, has the characters of
// a token).
func sendable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) &&
		!strings.ContainsAny(token, "\"'")
}
