package hubtest

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"syscall"
)

// RoundTrip answers a request without a network, as an http.RoundTripper. The body arrives as it's
// written. A cut connection is a reset.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	asked, h := r.Clone(ctx), s.hub
	if r.URL.Scheme+"://"+r.URL.Host == s.CDNURL {
		h = s.cdn
	}
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	body, end := io.Pipe()
	stop := context.AfterFunc(s.serving, func() {
		cancel(syscall.ECONNRESET)
		_ = end.CloseWithError(syscall.ECONNRESET)
	})
	a := &response{head: r.Method == http.MethodHead, begun: make(chan struct{}), header: http.Header{},
		body: end}
	s.done.Go(func() {
		defer func() {
			stop()
			var cut error
			if recover() != nil {
				cut = syscall.ECONNRESET
			} else {
				a.WriteHeader(http.StatusOK)
			}
			_ = end.CloseWithError(cut)
			_ = asked.Body.Close()
			cancel(syscall.ECONNRESET)
		}()
		h.ServeHTTP(a, asked)
	})
	select {
	case <-a.begun:
	case <-ctx.Done():
		select {
		case <-a.begun: // and ended
		default:
			return nil, cmp.Or(context.Cause(r.Context()), context.Cause(ctx))
		}
	}
	resp := &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Header: a.sent,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Request: r,
		Body: inMemoryBody{body, cancel}}
	if n, err := strconv.ParseInt(a.sent.Get("Content-Length"), 10, 64); err == nil {
		resp.ContentLength = n
	}
	return resp, nil
}

// A response is the answer of a request without a network.
type response struct {
	head   bool // without a body
	header http.Header
	body   *io.PipeWriter

	once   sync.Once
	begun  chan struct{} // closed when the following are known
	status int
	sent   http.Header
}

func (a *response) Header() http.Header { return a.header }

func (a *response) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

func (a *response) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.head {
		return len(p), nil
	}
	return a.body.Write(p)
}

// Flush sends the header.
func (a *response) Flush() { a.WriteHeader(http.StatusOK) }

// inMemoryBody ends the request when it's closed.
type inMemoryBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b inMemoryBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}
