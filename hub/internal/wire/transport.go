package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	gohf "github.com/gomlx/go-huggingface/hub"
)

// A Transport sends every request of a client. Nothing else sends the token.
type Transport struct {
	Opt      Options // complete
	Endpoint Endpoint
	caller   string         // token or publisher that rate limits apply to
	Jitter   func() float64 // in [0, 1)
	waits    waits          // that people may have to hear of
	moved    atomic.Bool    // file bytes have come or gone
}

// Exchange sends r once and follows redirects by its rule. It returns a 2xx answer, or the redirect
// where the rule stops. Everything else is an *Error. The caller closes the body.
func (t *Transport) Exchange(ctx context.Context, r *Request) (*http.Response, error) {
	resp, err := t.exchange(ctx, r)
	if err == nil {
		t.Opt.Governor.reached(resp.Request.URL.Host)
	}
	return resp, err
}

// exchange is Exchange, but doesn't say that the answer is from a Hub or its storage.
func (t *Transport) exchange(ctx context.Context, r *Request) (*http.Response, error) {
	if t.Opt.Offline {
		return nil, t.Failure(r, nil, ErrOffline)
	}
	u, err := parseLink(r.URL)
	if err != nil {
		return nil, t.Failure(r, nil, err)
	}
	if err := noDowngrade(t.Endpoint.URL, u); err != nil { // the link came from the hub's answer
		return nil, t.Failure(r, u, err)
	}
	for hop := 0; ; hop++ {
		resp, err := t.roundTrip(ctx, r, u)
		if err != nil {
			return nil, err
		}
		next, err := t.Endpoint.nextHop(r, u, resp, hop)
		if next == nil && err == nil {
			return t.gate(r, resp)
		}
		_ = resp.Body.Close()
		if err != nil {
			return nil, t.Failure(r, u, err)
		}
		t.Opt.Governor.reached(u.Host)
		if r.Follow == FollowStorage && !sameOrigin(u, next) { // hfd's header has the token
			stays := *r
			stays.Header = nil
			r = &stays
		}
		u = next
	}
}

// gate passes a success, or the redirect where r stops. It returns an *Error for a refusal, and for
// an answer that neither a Hub nor a storage sends. Every answer goes through it before anything
// reads it.
func (t *Transport) gate(r *Request, resp *http.Response) (*http.Response, error) {
	stopped := r.Follow == FollowRelative && IsRedirect(resp.StatusCode) &&
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
	if err := r.accept(resp); err != nil {
		_ = resp.Body.Close()
		return nil, t.Failure(r, u, err)
	}
	return resp, nil
}

// accept refuses a success with the wrong content.
func (r *Request) accept(resp *http.Response) error {
	var wrong error
	if r.Accept != nil {
		sized := resp.ContentLength >= 0 || resp.StatusCode == http.StatusPartialContent
		if wrong = r.Accept(resp); wrong == nil && sized {
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

// isPage reports whether an answer is a web page that no Hub sends: a captive portal, a firewall, or a
// proxy answers instead.
func isPage(h http.Header) bool {
	return strings.Contains(h.Get("Content-Type"), "html") &&
		h.Get(gohf.HeaderXRepoCommit) == "" && h.Get("X-Error-Code") == "" // only a Hub sends these
}

// roundTrip sends the request of one hop. The watch over the answer's body ends the connection if
// it stalls.
func (t *Transport) roundTrip(ctx context.Context, r *Request, u *url.URL) (*http.Response, error) {
	err := t.Opt.Governor.wait(ctx, t, t.laneOf(r, u))
	if errors.Is(err, errImpatient) {
		return nil, t.Failure(r, u, fmt.Errorf("%w: %w", ErrRateLimited, err)).after(1)
	} else if err != nil {
		return nil, err
	}
	token := ""
	if r.Token && t.Endpoint.Owns(u) { // after the wait, because the token may expire meanwhile
		if token, err = t.token(ctx); err != nil {
			return nil, err
		}
	}
	w := newWatch(ctx, t, max(t.Opt.StallTimeout, r.Slow))
	req := t.build(r, u, token, w)
	answered := t.reportSilence(r, u, max(t.Opt.StallTimeout, r.Slow))
	resp, err := t.Opt.HTTPTransport.RoundTrip(req)
	answered()
	if err != nil {
		if err = causeOf(w.ctx, err); errors.Is(err, io.EOF) {
			err = errNoAnswer
		}
		w.end()
		return nil, t.Failure(r, u, err)
	}
	t.Opt.Governor.answered.Store(true)
	t.Opt.Governor.spoke(u.Host)
	if wait, bucket := emptyBucket(resp.Header); wait > 0 && wait < t.Opt.Patience &&
		t.Endpoint.Owns(u) {
		t.Opt.Governor.close(t.Opt.Clock.Now(), t.laneOf(r, u), wait+time.Second,
			"rate limit of bucket "+bucket+" reached")
	}
	if r.Bulk {
		t.moved.Store(true)
	}
	t.Opt.Log.Debug("hub request", "method", r.Method, "url", redactURL(u), "status",
		resp.StatusCode)
	resp.Body = w.guard(resp.Body, r.Bulk && r.Method == http.MethodGet)
	return resp, nil
}

// token returns the token to send, or "".
func (t *Transport) token(ctx context.Context) (string, error) {
	if t.Opt.Tokens != nil {
		return t.Opt.Tokens(ctx, t)
	}
	return t.Opt.Token, nil
}

// build returns the http.Request of one hop. It opens the body again and sets its exact length.
func (t *Transport) build(r *Request, u *url.URL, token string, w *watch) *http.Request {
	req := &http.Request{Method: r.Method, URL: u, Host: u.Host, Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	req = req.WithContext(w.ctx)
	for k, v := range r.Header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", t.Opt.UserAgent)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if r.Body == nil {
		return req
	}
	if r.Follow == FollowStorage && t.Endpoint.Owns(u) { // send no byte that another host is to get
		req.Header.Set("Expect", "100-continue")
	}
	req.ContentLength = r.Size
	req.Body = http.NoBody
	if r.Size > 0 {
		req.Body = w.upload(r)
	}
	return req
}

// refusal makes an *Error of a refusal. X-Error-Code decides first, then the status.
func (t *Transport) refusal(r *Request, u *url.URL, resp *http.Response) *Error {
	e := t.Failure(r, u, nil)
	e.read(resp, t.Opt.Clock.Now())
	if t.Endpoint.Owns(u) {
		if e.Status == http.StatusUnauthorized && r.Token {
			e.sent, _ = strings.CutPrefix(resp.Request.Header.Get("Authorization"), "Bearer ")
		}
		e.Err = e.classify(r.Finds)
	} else if e.Status == http.StatusRequestEntityTooLarge {
		e.Err = errTooLong
	}
	if isPage(resp.Header) && !passes(e.Status) && !errors.Is(e.Err, ErrNoRoute) &&
		!errors.Is(e.Err, errTooLong) { // nginx and other proxies explain those in web pages
		e.Err = errPage
	}
	if t.Endpoint.Owns(u) && !e.Temporary() { // the Hub has decided
		t.Opt.Governor.reached(u.Host)
	}
	return e
}

// RefusedInside returns the error for one object that was refused inside a successful answer.
func (t *Transport) RefusedInside(r *Request, status int, message string) *Error {
	e := t.Failure(r, nil, nil)
	e.Status, e.Message = status, OneLine(message)
	e.Err = e.classify(true)
	return e
}

// Failure returns the *Error of a request that got no usable answer.
func (t *Transport) Failure(r *Request, u *url.URL, err error) *Error {
	e := &Error{Op: r.Op, Side: t.Opt.Side, Repo: r.Repo, Endpoint: t.Endpoint.String(), Err: err,
		login: t.Opt.Login, variable: t.Opt.EndpointSource}
	if r.Token && t.Opt.HasToken() {
		e.TokenSource = t.Opt.TokenSource
	}
	if u != nil {
		e.Method, e.URL, e.lane = r.Method, redactURL(u), t.laneOf(r, u)
	}
	return e
}

// Errorf returns an *Error that no request caused.
func (t *Transport) Errorf(op string, sentinel error, format string, args ...any) *Error {
	e := t.Failure(&Request{Op: op}, nil, sentinel)
	e.Message = OneLine(fmt.Sprintf(format, args...))
	return e
}

// CloseIdle closes the connections that no request uses.
func (t *Transport) CloseIdle() {
	if c, ok := t.Opt.HTTPTransport.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
