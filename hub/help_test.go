package hub

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

const okUser = `{"name":"me","type":"user","orgs":[{"name":"team"}],"auth":{"accessToken":{"displayName":"ci","role":"write"}}}`

// noon is when the clocks of testClient start.
var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// scripted answers requests without a network and records them.
type scripted struct {
	answer func(*http.Request) (*http.Response, error)
	mu     sync.Mutex
	seen   []*http.Request
}

func (w *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.seen = append(w.seen, r)
	w.mu.Unlock()
	return w.answer(r)
}

func (w *scripted) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// reply makes an answer; headers are "Key: value" lines.
func reply(r *http.Request, status int, body string, headers ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Request: r, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body))}
	for _, h := range headers {
		key, value, _ := strings.Cut(h, ": ")
		resp.Header.Add(key, value)
	}
	return resp
}

// script answers the n-th request with the n-th step, and with the last one
// from then on.
func script(steps ...func(*http.Request) (*http.Response, error)) *scripted {
	w := &scripted{}
	var n atomic.Int64
	w.answer = func(r *http.Request) (*http.Response, error) {
		return steps[min(int(n.Add(1)), len(steps))-1](r)
	}
	return w
}

func says(status int, body string, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) { return reply(r, status, body, headers...), nil }
}

func breaks(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// serve answers by an http.Handler, in memory.
func serve(h http.Handler) *scripted {
	return &scripted{answer: func(r *http.Request) (*http.Response, error) {
		if r.Body == nil {
			r.Body = http.NoBody
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		resp := rec.Result()
		resp.Request = r
		return resp, nil
	}}
}

// testClient is a client of https://hub.test with the token "hf_secret".
func testClient(t *testing.T, w http.RoundTripper, change ...func(*Options)) (*Client, *hubtest.JumpClock) {
	t.Helper()
	clock := hubtest.NewJumpClock(noon)
	opt := Options{Endpoint: "https://hub.test", Token: "hf_secret", TokenSource: "HF_TOKEN", HTTPTransport: w, Clock: clock}
	for _, f := range change {
		f(&opt)
	}
	c, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	c.t.Jitter = func() float64 { return 0.5 }
	return c, clock
}
