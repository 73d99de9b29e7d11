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
)

// transport sends every request of a client. It alone sends the token.
type transport struct {
	opt      Settings // complete
	endpoint endpoint
	lanes    lanes
	jitter   func() float64 // in [0, 1)
	stats    counters
	pauses   *pauses
	login    *login
	warned   topics
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
		next, err := t.endpoint.nextHop(r, u, resp, hop)
		if next == nil && err == nil {
			return t.check(r, u, resp)
		}
		_ = resp.Body.Close()
		if err != nil {
			return nil, t.failure(r, u, err)
		}
		r, u = r.onward(u, next), next
	}
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
	w := newWatch(ctx, &t.opt, &t.stats, max(t.opt.HeaderTimeout, r.slow))
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

// refusal reads an answer that is no success into an *Error. X-Error-Code decides first, then the status.
func (t *transport) refusal(r *request, u *url.URL, resp *http.Response) *Error {
	e := t.failure(r, u, nil)
	e.read(resp, t.opt.Clock.Now())
	if e.wait.lane = t.lanes.of(u); e.wait.bucket == "" {
		e.wait.lane = t.lanes.quota(u)
	}
	onHub := t.endpoint.owns(u)
	if onHub && r.bearer != "" {
		e.TokenSource = t.opt.TokenSource
	}
	if onHub {
		e.Err = classify(e)
	}
	return e
}

// refusedInside is the refusal of one object inside an answer that is a success as a whole.
func (t *transport) refusedInside(r *request, status int, message string) *Error {
	e := t.errorf(r.op, nil, "%s", message)
	e.Status, e.Repo, e.TokenSource = status, r.repo, t.opt.TokenSource
	e.Method, e.URL = r.method, redact(r.url)
	if link, err := parseVerbatim(r.url); err == nil {
		e.wait.lane = t.lanes.quota(link)
	}
	e.Err = classify(e)
	return e
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
