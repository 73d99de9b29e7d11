package wire

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
)

// Options configure a client. The zero value reads public models from the public hub, without
// cache.
type Options struct {
	Endpoint    string     // "" is https://huggingface.co
	Token       string     // "" is anonymous
	TokenSource string     // named in errors: "HF_TOKEN", "file /home/me/.cache/huggingface/token"
	Login       string     // what hints advise where no token is set; "" is to set HF_TOKEN
	Publisher   *Publisher // gets tokens that end, in place of Token; nil for none
	CacheDir    string     // shared cache to read first; "" for none
	Offline     bool       // no HTTP at all; only the cache answers
	Side        string     // "source" or "target": begins every error
	UserAgent   string     // "df11-convert/1.2.3"

	RangeBytes int64 // bytes per ranged GET of a stream; 0 is DefaultRangeBytes
	// bytes that all streams fetch ahead; 0 is RangesAhead × RangeBytes. Fewer ranges are fewer
	// transfers
	BufferBytes int64
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

// DefaultRangeBytes is what a stream asks for at a time.
const DefaultRangeBytes = 8 << 20

// RangesAhead is how many ranges all streams together fetch ahead: one for each transfer, and half
// as many again that are complete and wait for the reader while the lines stay busy.
const RangesAhead = Transfers + Transfers/2

// Publisher is a job of a CI system that a hub trusts instead of a stored token. Its identity is a
// token that the CI signs and that lasts for minutes. It is exchanged (RFC 8693) for a token of the
// hub that lasts for an hour, again and again as long as the job runs.
type Publisher struct {
	// ns/name: a repo to write to, and nothing else; or a user, whose gated repos can be read
	Resource string
	// Identity is such a token, made beforehand; "" asks GitHub for one each time, at RequestURL
	// with RequestToken.
	Identity, RequestURL, RequestToken string
}

// ForRepo says whether the tokens are for a repo, and not for what a user may read.
func (p *Publisher) ForRepo() bool { return strings.Contains(p.Resource, "/") }

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
	who := opt.Token
	if opt.Publisher != nil {
		who = opt.Publisher.Resource
	}
	t := &Transport{Opt: opt, Endpoint: endpoint, caller: who, Jitter: rand.Float64}
	t.pauses = &pauses{clock: opt.Clock, onWait: opt.OnWait}
	t.login = &login{t: t, lock: semaphore.NewWeighted(1)}
	return t, nil
}

// HasToken says whether the hub is asked with a token.
func (o *Options) HasToken() bool { return o.Token != "" || o.Publisher != nil }

// complete fills in defaults and refuses what cannot work.
func (o *Options) complete() error {
	if o.Token != "" {
		o.TokenSource = cmp.Or(o.TokenSource, "the command line")
	}
	if o.Publisher != nil {
		o.TokenSource = "trusted publishing for " + o.Publisher.Resource
	}
	if !sendable(o.Token) {
		return fmt.Errorf("the token from %s holds blanks or characters that no token has",
			o.TokenSource)
	}
	if o.LimitRate < 0 || o.RangeBytes < 0 || o.BufferBytes < 0 {
		return errors.New("rate, range and buffer must not be negative")
	}
	o.RangeBytes = cmp.Or(o.RangeBytes, DefaultRangeBytes)
	o.BufferBytes = cmp.Or(o.BufferBytes, RangesAhead*o.RangeBytes)
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

// sendable says whether a token can be one.
func sendable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
