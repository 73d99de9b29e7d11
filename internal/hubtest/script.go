package hubtest

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// Scripted is an http.RoundTripper that answers requests without a network and records them.
type Scripted struct {
	Answer func(*http.Request) (*http.Response, error)
	mu     sync.Mutex
	Seen   []*http.Request // read it when no request is running
}

// RoundTrip implements http.RoundTripper.
func (s *Scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.Seen = append(s.Seen, r)
	s.mu.Unlock()
	return s.Answer(r)
}

// Count returns the number of requests so far.
func (s *Scripted) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.Seen)
}

// Reply returns an answer. headers are "Key: value" lines.
func Reply(r *http.Request, status int, body string, headers ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Request: r,
		ContentLength: int64(len(body)),
		Body:          io.NopCloser(strings.NewReader(body))}
	for _, h := range headers {
		key, value, _ := strings.Cut(h, ": ")
		resp.Header.Add(key, value)
	}
	return resp
}

// Script answers the n-th request with the n-th step, and with the last one from then on.
func Script(steps ...func(*http.Request) (*http.Response, error)) *Scripted {
	s := &Scripted{}
	var n atomic.Int64
	s.Answer = func(r *http.Request) (*http.Response, error) {
		return steps[min(int(n.Add(1)), len(steps))-1](r)
	}
	return s
}

// Says is a step that replies.
func Says(status int, body string, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response,
		error) {
		return Reply(r, status, body, headers...), nil
	}
}

// Breaks is a step that fails.
func Breaks(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}
