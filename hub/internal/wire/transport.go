package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
)

// Transport sends every request of a client. It alone sends the token.
type Transport struct {
	Opt      Options // complete
	Endpoint Endpoint
	caller   string         // token or publisher: whom limits are for
	Jitter   func() float64 // in [0, 1)
	moved    atomic.Bool    // bytes of files have come or gone
	known    atomic.Int64   // the end of the wait that people heard of last
}

// Exchange sends r once, following redirects as its rule allows, and gives a 2xx answer or the
// redirect at which the rule stops. Everything else is an *Error. The caller closes the body.
func (t *Transport) Exchange(ctx context.Context, r *Request) (*http.Response, error) {
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
			return t.check(r, resp)
		}
		_ = resp.Body.Close()
		if err != nil {
			return nil, t.Failure(r, u, err)
		}
		r, u = r.onward(u, next), next
	}
}

// check turns an answer that is no success into an *Error.
func (t *Transport) check(r *Request, resp *http.Response) (*http.Response, error) {
	stopped := r.Follow == FollowRelative && IsRedirect(resp.StatusCode) &&
		resp.Header.Get("Location") != ""
	if resp.StatusCode >= 200 && resp.StatusCode < 300 || stopped {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, t.refusal(r, resp.Request.URL, resp)
}

// roundTrip sends one request of one hop. The watch that guards the answer's body ends the
// connection when it stalls.
func (t *Transport) roundTrip(ctx context.Context, r *Request, u *url.URL) (*http.Response, error) {
	lane := t.laneOf(u)
	err := t.Opt.Governor.wait(ctx, t, lane)
	if err != nil {
		return nil, err
	}
	token := ""
	if r.Token && t.Endpoint.Owns(u) { // a turn may come later than a token ends
		if token, err = t.token(ctx); err != nil {
			return nil, err
		}
	}
	w := newWatch(ctx, t, max(t.Opt.StallTimeout, r.Slow))
	req := t.build(r, u, token, w)
	resp, err := t.Opt.HTTPTransport.RoundTrip(req)
	if err != nil {
		if err = causeOf(w.ctx, err); errors.Is(err, io.EOF) {
			err = errNoAnswer
		}
		w.end()
		return nil, t.Failure(r, u, err)
	}
	t.Opt.Governor.answered.Store(true)
	t.Opt.Log.Debug("hub request", "method", r.Method, "url", redactURL(u), "status",
		resp.StatusCode,
		"warning", OneLine(resp.Header.Get("X-HF-Warning")))
	t.Opt.Governor.observe(t.Opt.Clock.Now(), lane, resp)
	resp.Body = w.guard(resp.Body, r.Bulk && r.Method == http.MethodGet)
	return resp, nil
}

// token gives the token to send, "" for none.
func (t *Transport) token(ctx context.Context) (string, error) {
	if t.Opt.Tokens != nil {
		return t.Opt.Tokens(ctx)
	}
	return t.Opt.Token, nil
}

// build makes the http.Request of one hop: the body opened anew, its length exact.
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
	req.ContentLength = r.Size
	req.Body = http.NoBody
	if r.Size > 0 {
		req.Body = w.upload(r)
	}
	return req
}

// refusal reads an answer that is no success into an *Error. X-Error-Code decides first, then the
// status.
func (t *Transport) refusal(r *Request, u *url.URL, resp *http.Response) *Error {
	e := t.Failure(r, u, nil)
	e.read(resp, t.Opt.Clock.Now())
	e.wait.lane = t.laneOf(u)
	if t.Endpoint.Owns(u) {
		if r.Token && t.Opt.HasToken() {
			e.TokenSource = t.Opt.TokenSource
		}
		e.Err = e.classify(r.Finds)
	}
	return e
}

// RefusedInside is the refusal of one object inside an answer that is a success as a whole.
func (t *Transport) RefusedInside(r *Request, status int, message string) *Error {
	u, _ := parseLink(r.URL) // which was sent
	object := *r
	object.Finds = true // a 404 is about the repo
	return t.refusal(&object, u, &http.Response{StatusCode: status,
		Header: http.Header{"X-Error-Message": {message}}, Body: http.NoBody})
}

// Failure is the *Error of a request that got no usable answer.
func (t *Transport) Failure(r *Request, u *url.URL, err error) *Error {
	e := &Error{Op: r.Op, Side: t.Opt.Side, Repo: r.Repo, Endpoint: t.Endpoint.String(), Err: err,
		needs: r.needs(), login: t.Opt.Login}
	if u != nil {
		e.Method, e.URL = r.Method, redactURL(u)
	}
	return e
}

// Errorf makes an *Error that no request caused.
func (t *Transport) Errorf(op string, sentinel error, format string, args ...any) *Error {
	e := t.Failure(&Request{Op: op}, nil, sentinel)
	e.Message = OneLine(fmt.Sprintf(format, args...))
	return e
}
