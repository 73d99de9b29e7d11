package hub

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	gohf "github.com/gomlx/go-huggingface/hub"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// A transport sends every request of a client. Nothing else sends the token.
type transport struct {
	opt      Connection // complete
	endpoint endpoint
	caller   string         // token or publisher that rate limits apply to
	jitter   func() float64 // in [0, 1)
	waits    waits          // that people may have to hear of
	moved    atomic.Bool    // file bytes have come or gone

	// tokens returns the token of each request, for tokens that expire; nil for the one Token
	tokens func(context.Context, *transport) (string, error)
	// refused is called once a request after the hub has refused a token. It reports whether tokens
	// has another one now, or else what to do, if it knows; nil for no
	refused func(ctx context.Context, t *transport, token string) (again bool, step hint.Hint)
}

// newTransport checks the settings. It makes no request.
func newTransport(c Connection) (*transport, error) {
	address, err := parseEndpoint(c.Endpoint)
	if err != nil {
		return nil, err
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	return &transport{opt: c, endpoint: address, caller: cmp.Or(c.Token, c.TokenSource),
		jitter: rand.Float64}, nil
}

// with returns a transport with the connections, limits, and tokens of t, for a call with another
// name, log, and OnWait. What it waits for is reported to that call alone.
func (t *transport) with(call Call) *transport {
	opt := t.opt
	opt.OnWait = call.OnWait
	opt.name(call.UserAgent, call.Log)
	return &transport{opt: opt, endpoint: t.endpoint, caller: t.caller, jitter: t.jitter,
		tokens: t.tokens, refused: t.refused}
}

// hasToken reports whether requests to the hub carry a token.
func (t *transport) hasToken() bool { return t.opt.Token != "" || t.tokens != nil }

// exchange sends r once and notes that the answer's host serves. The caller closes the body.
func (t *transport) exchange(ctx context.Context, r *request) (*http.Response, error) {
	resp, err := t.send(ctx, r)
	if err == nil {
		t.opt.Governor.reached(resp.Request.URL.Host)
	}
	return resp, err
}

// send sends r once and follows redirects by its rule. It returns a 2xx answer, or the redirect
// where the rule stops. Everything else is an *Error. The caller closes the body, and says whether
// the answer is from a Hub or its storage.
func (t *transport) send(ctx context.Context, r *request) (*http.Response, error) {
	if t.opt.Offline {
		return nil, t.failure(r, nil, ErrOffline)
	}
	u, err := parseLink(r.url)
	if err != nil {
		return nil, t.failure(r, nil, err)
	}
	if err := noDowngrade(t.endpoint.URL, u); err != nil { // the link came from the hub's answer
		return nil, t.failure(r, u, err)
	}
	for hop := 0; ; hop++ {
		resp, err := t.roundTrip(ctx, r, u)
		if err != nil {
			return nil, err
		}
		next, err := t.endpoint.nextHop(r, u, resp, hop)
		if next == nil && err == nil {
			return t.gate(r, resp)
		}
		_ = resp.Body.Close()
		if err != nil {
			return nil, t.failure(r, u, err)
		}
		t.opt.Governor.reached(u.Host)
		if r.follow == followStorage && !sameOrigin(u, next) { // hfd's header has the token
			stays := *r
			stays.header = nil
			r = &stays
		}
		u = next
	}
}

// gate passes a success, or the redirect where r stops. It returns an *Error for a refusal, and for
// an answer that neither a Hub nor a storage sends. Every answer goes through it before anything
// reads it.
func (t *transport) gate(r *request, resp *http.Response) (*http.Response, error) {
	stopped := r.follow == followRelative && isRedirect(resp.StatusCode) &&
		resp.Header.Get("Location") != ""
	if stopped {
		return resp, nil
	}
	u := resp.Request.URL
	if resp.Header.Get("Content-Type") == "" {
		sniff(resp)
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, t.refusal(r, u, resp)
	}
	if err := r.checkContent(resp); err != nil {
		_ = resp.Body.Close()
		return nil, t.failure(r, u, err)
	}
	return resp, nil
}

// checkContent refuses a success with the wrong content.
func (r *request) checkContent(resp *http.Response) error {
	var wrong error
	if r.accept != nil {
		sized := resp.ContentLength >= 0 || resp.StatusCode == http.StatusPartialContent
		if wrong = r.accept(resp); wrong == nil && sized {
			return nil // a file may be a web page
		}
	}
	if isPage(resp.Header) {
		return errPage
	}
	return wrong
}

// sniff names the type of a web page that comes without one, as a captive portal may send it (RFC
// 8952).
func sniff(resp *http.Response) {
	const enough = 512 // for http.DetectContentType
	b := bufio.NewReaderSize(resp.Body, enough)
	begin, _ := b.Peek(enough) // a failure comes again when the body is read
	if kind := http.DetectContentType(begin); strings.Contains(kind, "html") {
		resp.Header.Set("Content-Type", kind)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{b, resp.Body}
}

// isPage reports whether an answer is a web page that no Hub sends: a captive portal, a firewall,
// or a proxy answers instead.
func isPage(h http.Header) bool {
	return strings.Contains(h.Get("Content-Type"), "html") &&
		h.Get(gohf.HeaderXRepoCommit) == "" && h.Get("X-Error-Code") == "" // only a Hub sends these
}

// isBare reports whether a HEAD is refused with nothing that a Hub's refusals have: a page that
// comes without a type, as sniff finds it, has no body here. Hubs send the headers of their answer
// to GET (RFC 9110, section 9.3.2), or like KohakuHub and olah their code.
func isBare(r *request, resp *http.Response) bool {
	has := func(name string) bool { return resp.Header.Get(name) != "" }
	return r.method == http.MethodHead && resp.StatusCode == http.StatusForbidden &&
		!has("Content-Type") && !has("X-Error-Code") && !has("X-Error-Message")
}

// roundTrip sends the request of one hop. The watch over the answer's body ends the connection if
// it stalls.
func (t *transport) roundTrip(ctx context.Context, r *request, u *url.URL) (*http.Response, error) {
	err := t.opt.Governor.wait(ctx, t, t.laneOf(r, u))
	if errors.Is(err, errImpatient) {
		return nil, t.failure(r, u, fmt.Errorf("%w: %w", ErrRateLimited, err)).after(1)
	} else if err != nil {
		return nil, err
	}
	token := ""
	if r.token && t.endpoint.owns(u) { // after the wait, because the token may expire meanwhile
		if token, err = t.token(ctx); err != nil {
			return nil, err
		}
	}
	w := newWatch(ctx, t, max(t.opt.StallTimeout, r.slow))
	req := t.build(r, u, token, w)
	answered := t.reportSilence(r, u, max(t.opt.StallTimeout, r.slow))
	resp, err := t.opt.HTTPTransport.RoundTrip(req)
	answered()
	if err != nil {
		if err = causeOf(w.ctx, err); errors.Is(err, io.EOF) {
			err = errNoAnswer
		}
		w.end()
		return nil, t.failure(r, u, err)
	}
	t.opt.Governor.answered.Store(true)
	t.opt.Governor.spoke(u.Host)
	if wait, bucket := emptyBucket(resp.Header); wait > 0 && wait < t.opt.Patience &&
		t.endpoint.owns(u) {
		t.opt.Governor.close(t.opt.Clock.Now(), t.laneOf(r, u), wait+time.Second,
			"rate limit of bucket "+bucket+" reached")
	}
	if r.bulk {
		t.moved.Store(true)
	}
	t.opt.Log.Debug("hub request", "method", r.method, "url", redactURL(u), "status",
		resp.StatusCode, "request_id", requestID(resp.Header))
	resp.Body = w.guard(resp.Body, r.bulk && r.method == http.MethodGet)
	return resp, nil
}

// token returns the token to send, or "".
func (t *transport) token(ctx context.Context) (string, error) {
	if t.tokens != nil {
		return t.tokens(ctx, t)
	}
	return t.opt.Token, nil
}

// build returns the http.Request of one hop. It opens the body again and sets its exact length.
func (t *transport) build(r *request, u *url.URL, token string, w *watch) *http.Request {
	req := &http.Request{Method: r.method, URL: u, Host: u.Host, Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	req = req.WithContext(w.ctx)
	for k, v := range r.header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", t.opt.UserAgent)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if r.body == nil {
		return req
	}
	if r.follow == followStorage && t.endpoint.owns(u) { // send no byte that another host is to get
		req.Header.Set("Expect", "100-continue")
	}
	req.ContentLength = r.size
	req.Body = http.NoBody
	if r.size > 0 {
		req.Body = w.upload(r)
	}
	return req
}

// refusal makes an *Error of a refusal. X-Error-Code decides first, then the status.
func (t *transport) refusal(r *request, u *url.URL, resp *http.Response) *Error {
	e := t.failure(r, u, nil)
	e.read(resp, t.opt.Clock.Now())
	if t.endpoint.owns(u) {
		if e.Status == http.StatusUnauthorized && r.token {
			e.sent, _ = strings.CutPrefix(resp.Request.Header.Get("Authorization"), "Bearer ")
		}
		e.Err = e.classify(r.finds)
	} else if e.Status == http.StatusRequestEntityTooLarge {
		e.Err = errTooLong
	}
	if (isPage(resp.Header) || isBare(r, resp)) && !passes(e.Status) && !errors.Is(e.Err, errNoRoute) &&
		!errors.Is(e.Err, errTooLong) { // nginx and other proxies explain those in web pages
		e.Err = errPage
	}
	if t.endpoint.owns(u) && !e.Temporary() { // the Hub has decided
		t.opt.Governor.reached(u.Host)
	}
	return e
}

// refusedInside returns the error for one object that was refused inside a successful answer.
func (t *transport) refusedInside(r *request, status int, message string) *Error {
	e := t.failure(r, nil, nil)
	e.Status, e.Message = status, oneLine(message)
	e.Err = e.classify(true)
	return e
}

// failure returns the *Error of a request that got no usable answer.
func (t *transport) failure(r *request, u *url.URL, err error) *Error {
	e := &Error{Op: r.op, Side: t.opt.Side, Repo: r.repo, Endpoint: t.endpoint.String(), Err: err,
		login: t.opt.Login, variable: t.opt.EndpointSource}
	if r.token && t.hasToken() {
		e.TokenSource = t.opt.TokenSource
	}
	if u != nil {
		e.Method, e.URL, e.lane = r.method, redactURL(u), t.laneOf(r, u)
	}
	return e
}

// errorf returns an *Error that no request caused.
func (t *transport) errorf(op string, sentinel error, format string, args ...any) *Error {
	e := t.failure(&request{op: op}, nil, sentinel)
	e.Message = oneLine(fmt.Sprintf(format, args...))
	return e
}

// closeIdle closes the connections that no request uses.
func (t *transport) closeIdle() {
	if c, ok := t.opt.HTTPTransport.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
