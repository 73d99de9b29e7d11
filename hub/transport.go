package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// transport sends every request of a client. It alone sends the token.
type transport struct {
	opt      Options // complete
	endpoint endpoint
	lanes    lanes
	jitter   func() float64 // in [0, 1)
	stats    counters
	pauses   *pauses
	login    *login
	warned   topics
}

// request is one thing to ask, repeatable: its body can be opened again.
type request struct {
	op     string // for errors: "read model info of ns/name"
	repo   string // empty if the request is about no repo
	method string
	url    string
	header http.Header
	body   func() io.Reader // nil for none
	size   int64            // exact length of the body
	bulk   bool             // file bytes: throttled, counted
	follow followRule
	token  bool          // send the token if the hop is on the hub
	slow   time.Duration // time to the headers if longer than usual
	slot   *slot         // of a transfer, given back after each try; nil for a request that needs none

	bearer   string // the token, where one is sent
	progress bool   // the latest try brought bytes: the count of failures starts again
}

// exchange sends r once, following redirects as its rule allows, and gives a 2xx answer or the redirect at which the
// rule stops. Everything else is an *Error. The caller closes the body.
func (t *transport) exchange(ctx context.Context, r *request) (*http.Response, error) {
	if t.opt.Offline {
		return nil, &Error{Op: r.op, Side: t.opt.Side, Repo: r.repo, Endpoint: t.endpoint.String(), Err: ErrOffline}
	}
	u, err := parseVerbatim(r.url)
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
		next, err := t.nextHop(r, u, resp, hop)
		if next == nil && err == nil {
			return t.check(r, u, resp)
		}
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		r, u = r.onward(u, next), next
	}
}

// onward is the request at the next hop. What its own headers authorize, such as those that a storage link came with, is for
// the origin that they were made for.
func (r *request) onward(from, to *url.URL) *request {
	if sameOrigin(from, to) || r.header.Get("Authorization") == "" {
		return r
	}
	bare := *r
	bare.header = r.header.Clone()
	bare.header.Del("Authorization")
	return &bare
}

// check turns an answer that is no success into an *Error.
func (t *transport) check(r *request, u *url.URL, resp *http.Response) (*http.Response, error) {
	stopped := r.follow == followRelative && isRedirect(resp.StatusCode) && resp.Header.Get("Location") != ""
	if resp.StatusCode >= 200 && resp.StatusCode < 300 || stopped {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, t.refusal(r, u, resp)
}

// roundTrip sends one request of one hop. The watch that guards the answer's body ends the connection when it stalls.
func (t *transport) roundTrip(ctx context.Context, r *request, u *url.URL) (*http.Response, error) {
	lane := t.lanes.of(u)
	err := t.opt.Governor.wait(ctx, t.pauses, t.lanes.quota(u), lane)
	if err != nil {
		return nil, err
	}
	if r.token { // a turn may come later than a token ends
		if r.bearer, err = t.login.token(ctx); err != nil {
			return nil, err
		}
	}
	w := newWatch(ctx, t, max(t.opt.HeaderTimeout, r.slow))
	req := t.build(r, u, w)
	t.stats.requests.Add(1)
	resp, err := t.opt.HTTPTransport.RoundTrip(req)
	if err != nil {
		if err = causeOf(w.ctx, err); errors.Is(err, io.EOF) {
			err = errNoAnswer
		}
		w.end()
		return nil, t.failure(r, u, err)
	}
	t.opt.Governor.answered.Store(true)
	resp.Request = req
	t.opt.Log.Debug("hub request", "method", r.method, "url", redactURL(u), "status", resp.StatusCode)
	t.pauses.begin(t.opt.Governor.observe(t.opt.Clock.Now(), lane, resp), 0)
	t.warn(resp)
	resp.Body = w.guard(resp.Body, r.bulk && r.method == http.MethodGet)
	return resp, nil
}

// errNoAnswer stands for io.EOF, which readers of a file would take for its end.
var errNoAnswer = errors.New("connection closed without an answer")

// build makes the http.Request of one hop: the token only on the hub, the body opened anew, its length exact.
func (t *transport) build(r *request, u *url.URL, w *watch) *http.Request {
	req := &http.Request{Method: r.method, URL: u, Host: u.Host, Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	req = req.WithContext(w.ctx)
	for k, v := range r.header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", t.opt.UserAgent)
	if r.bearer != "" && t.endpoint.owns(u) {
		req.Header.Set("Authorization", "Bearer "+r.bearer)
	}
	if r.body == nil {
		return req
	}
	req.ContentLength = r.size
	req.Body = http.NoBody
	if r.size > 0 {
		req.Body = w.upload(r)
	}
	return req
}

// topics are those of X-HF-Warning that were logged, as many as people may want to read of whatever a hub sends.
type topics struct {
	mu    sync.Mutex
	known []string
}

const maxTopics = 20

// news says whether a topic is to be logged, which happens once.
func (s *topics) news(topic string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) == maxTopics || slices.Contains(s.known, topic) {
		return false
	}
	s.known = append(s.known, topic)
	return true
}

// warn logs each topic of X-HF-Warning once.
func (t *transport) warn(resp *http.Response) {
	for _, line := range resp.Header.Values("X-HF-Warning") {
		topic, text, ok := strings.Cut(line, ";")
		if !ok {
			topic, text = "", line
		}
		if topic = oneLine(topic); t.warned.news(topic) {
			t.opt.Log.Warn("hub warning", "topic", topic, "text", oneLine(text))
		}
	}
}

// failure is the *Error of a request that got no usable answer.
func (t *transport) failure(r *request, u *url.URL, err error) *Error {
	e := &Error{Op: r.op, Side: t.opt.Side, Method: r.method, Repo: r.repo, Endpoint: t.endpoint.String(), Err: err}
	if u != nil {
		e.URL = redactURL(u)
	}
	return e
}

// errorf makes an *Error that no request caused.
func (t *transport) errorf(op string, sentinel error, format string, args ...any) *Error {
	return &Error{Op: op, Side: t.opt.Side, Err: sentinel, Message: oneLine(fmt.Sprintf(format, args...)), Endpoint: t.endpoint.String()}
}
