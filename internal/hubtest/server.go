package hubtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A Server is one hub with its CDN. Its methods are those of its parts: the repos, the log of
// requests, and the fault rules. Many goroutines may call them, even while requests are served.
type Server struct {
	URL    string // origin of the hub, http://127.0.0.1:PORT
	CDNURL string // origin of the signed URLs, http://localhost:PORT

	*store
	requestLog
	faultRules

	cfg     config
	trust   trust
	secret  []byte       // signs URLs
	links   atomic.Int64 // signed so far
	used    sync.Map     // signatures of URLs that were asked for
	uploads sync.Map     // multipart, by id
	near    atomic.Bool  // from now on, without the limits of a line

	hub, cdn http.Handler
	http     []*http.Server  // none in memory
	serving  context.Context //nolint:containedctx // ends with the server
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

// New starts a server on free ports of the loopback interface. Like httptest.NewServer, it panics
// if it can't listen.
func New(opts ...Option) *Server {
	s, err := Listen("127.0.0.1:0", opts...)
	if err != nil {
		panic("hubtest: " + err.Error())
	}
	return s
}

// TB is the part of testing.TB that Start needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// Start is New for a test. The server is closed when the test ends, and every recorded violation
// fails the test.
func Start(tb TB, opts ...Option) *Server {
	tb.Helper()
	s := New(opts...)
	tb.Cleanup(func() {
		s.Close()
		for _, v := range s.Violations() {
			tb.Errorf("hubtest: %s", v)
		}
	})
	return s
}

// Listen starts a server whose hub listens at addr; the CDN takes a free port of the same machine.
func Listen(addr string, opts ...Option) (*Server, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{cfg: defaultConfig(), trust: trust{identities: map[string]identity{},
		tokens: map[string]issued{}, logins: map[string]login{}}, serving: ctx, cancel: cancel}
	for _, opt := range opts {
		opt(&s.cfg)
	}
	s.store, s.secret = newStore(&s.cfg), []byte(rand.Text())
	s.hub, s.cdn = s.wrap(HostHub, s.hubRoutes()), s.wrap(HostCDN, cdn{s}.routes())
	if s.URL, s.CDNURL = s.cfg.origin, s.cfg.cdnOrigin; s.URL != "" {
		return s, nil
	}
	hub, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	storage, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		hub.Close()
		return nil, err
	}
	s.URL = "http://" + hub.Addr().String()
	s.CDNURL = fmt.Sprintf("http://localhost:%d", storage.Addr().(*net.TCPAddr).Port)
	s.serve(ctx, hub, s.hub)
	s.serve(ctx, storage, s.cdn)
	return s, nil
}

func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler) {
	server := &http.Server{
		Handler: h, BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // faults cut connections on purpose
	}
	s.http = append(s.http, server)
	s.done.Go(func() { _ = server.Serve(l) })
}

// Close stops both listeners and cuts the requests still being served, including stalled answers.
// You may call it twice.
func (s *Server) Close() {
	s.cancel()
	for _, h := range s.http {
		_ = h.Close()
	}
	s.done.Wait()
	for _, o := range s.objects {
		if c, ok := o.body.(io.Closer); ok {
			_ = c.Close()
		}
	}
}

// wrap puts the log, the link speed and the fault rules in front of next.
func (s *Server) wrap(host Host, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), waysKey{}, s.cfg.Ways))
		t := s.begin(host, w, r)
		defer s.finish(t)
		if !s.near.Load() {
			if t.links = s.cfg.links; s.cfg.latency > 0 && !sleep(t.done, s.cfg.latency) {
				return
			}
		}
		r.Body = &trackedBody{r.Body, t}
		if host == HostHub {
			// never used up here: faults see to that
			t.Header().Set("RateLimit", `"api";r=999;t=300`)
			t.Header().Set("Date", s.cfg.clock().UTC().Format(http.TimeFormat))
			t.Header().Set("X-Request-Id", fmt.Sprintf("Root=1-%08x-hubtest", t.req.Seq))
		}
		rule := s.pick(host, r)
		if rule == nil {
			next.ServeHTTP(t, r)
			return
		}
		t.note(func(q *Request) { q.Fault = rule.Name })
		rule.Action(&Exchange{ResponseWriter: t, Request: r, Server: s, next: next})
	})
}

// finish ends the log line. A route's panic becomes a violation.
func (s *Server) finish(t *tracked) {
	t.note(func(q *Request) { q.End = time.Now() })
	if v := recover(); v != nil {
		if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			s.violation("internal error: %s %s: %v", t.req.Method, t.req.Path, v)
		}
		panic(http.ErrAbortHandler) // the connection can't be used any more
	}
}
