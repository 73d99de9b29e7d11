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
	"os"
	"strings"
	"sync"
	"time"
)

// Server is one hub with its CDN. All methods may be called from several
// goroutines, also while requests are being served.
type Server struct {
	URL    string // origin of the hub, http://127.0.0.1:PORT
	CDNURL string // origin of the signed URLs, http://localhost:PORT

	cfg     config
	secret  []byte // signs CDN URLs
	log     requestLog
	faults  faultSet
	limiter rateHeaders
	down    *link
	up      *link

	mu       sync.Mutex
	repos    map[string]*repo
	renames  map[string]string
	sessions map[string]*session
	objects  map[string]*object
	buffers  sync.Pool // of parts that were dropped
	spool    string    // uploads on their way into the push folder

	http   []*http.Server
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// New starts a server on free ports of the loopback interface. Like
// httptest.NewServer it panics when it cannot listen.
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

// Start is New for a test: the server is closed when the test ends, and every
// recorded violation fails it.
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

// Listen starts a server whose hub listens at addr; the CDN takes a free port
// of the same machine.
func Listen(addr string, opts ...Option) (*Server, error) {
	s := &Server{
		cfg:      defaultConfig(),
		secret:   make([]byte, 32),
		repos:    map[string]*repo{},
		renames:  map[string]string{},
		sessions: map[string]*session{},
		objects:  map[string]*object{},
	}
	for _, opt := range opts {
		opt(&s.cfg)
	}
	_, _ = rand.Read(s.secret)
	s.down, s.up = newLink(s.cfg.downRate), newLink(s.cfg.upRate)
	s.limiter.quota = s.cfg.quota
	if err := s.openPushDir(); err != nil {
		return nil, err
	}
	hub, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	cdn, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		hub.Close()
		return nil, err
	}
	s.URL = "http://" + hub.Addr().String()
	s.CDNURL = fmt.Sprintf("http://localhost:%d", cdn.Addr().(*net.TCPAddr).Port)
	s.serve(hub, cdn)
	return s, nil
}

func (s *Server) serve(hub, cdn net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	base := func(net.Listener) context.Context { return ctx }
	s.run(hub, &http.Server{Handler: s.wrap(HostHub, s.hubRoutes()), BaseContext: base})
	s.run(cdn, &http.Server{Handler: s.wrap(HostCDN, s.cdnRoutes()), BaseContext: base})
}

func (s *Server) run(l net.Listener, h *http.Server) {
	h.ReadHeaderTimeout = time.Minute
	h.ErrorLog = log.New(io.Discard, "", 0) // faults cut connections on purpose
	s.http = append(s.http, h)
	s.done.Go(func() { _ = h.Serve(l) })
}

// Close stops both listeners and cuts what is still being served, stalled
// answers included. It may be called twice.
func (s *Server) Close() {
	s.cancel()
	for _, h := range s.http {
		_ = h.Close()
	}
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		o.close()
	}
	if s.spool != "" {
		_ = os.RemoveAll(s.spool)
	}
}

// wrap puts the log, the fault rules and the link speed in front of next.
func (s *Server) wrap(host Host, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := s.log.begin(host, w, r)
		defer s.finish(t)
		r.Body = &countedBody{ReadCloser: r.Body, n: &t.received, link: s.up, done: r.Context().Done()}
		out := &pacedWriter{ResponseWriter: t, link: s.down, done: r.Context().Done()}
		if host == HostHub {
			s.limiter.stamp(out.Header(), r, s.cfg.clock())
			out.Header().Set("X-Request-Id", requestID(t.seq, r))
		}
		rule := s.faults.pick(host, r)
		if rule == nil {
			next.ServeHTTP(out, r)
			return
		}
		t.fault.Store(&rule.Name)
		rule.Action(&Exchange{ResponseWriter: out, Request: r, Server: s, next: next})
	})
}

// finish closes the log line; a route that panics shows up among the violations.
func (s *Server) finish(t *tracked) {
	s.log.end(t)
	if v := recover(); v != nil {
		if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			s.log.violation("internal error: %s %s: %v", t.req.Method, t.req.Path, v)
		}
		panic(http.ErrAbortHandler) // the connection is of no use any more
	}
}

func requestID(seq int, r *http.Request) string {
	id := fmt.Sprintf("Root=1-%08x-hubtest", seq)
	if trace := r.Header.Get("X-Amzn-Trace-Id"); trace != "" {
		id += ";" + trace
	}
	return id
}

// hubRoutes dispatches on the first path segment, because the routes below
// /api/ and the routes below /{namespace}/ would overlap in one mux.
func (s *Server) hubRoutes() http.Handler {
	api, site := s.apiMux(), s.siteMux()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.redirectRenamed(w, r) {
			return
		}
		if err := s.limiter.check(r); err != nil {
			writeError(w, err)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/api/") {
			api.ServeHTTP(w, r)
			return
		}
		site.ServeHTTP(w, r)
	})
}

func (s *Server) apiMux() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, h handler) { mux.Handle(pattern, h) }
	handle("GET /api/whoami-v2", s.whoami)
	handle("POST /api/validate-yaml", s.validateYAML)
	handle("POST /api/repos/create", s.createRepo)
	handle("POST /api/repos/move", s.moveRepo)
	handle("DELETE /api/repos/delete", s.deleteRepo)
	handle("POST /api/complete_multipart", s.completeMultipart)
	handle("GET /api/resolve-cache/models/{ns}/{name}/{rev}/{path...}", s.resolveCache)
	const model = "/api/models/{ns}/{name}"
	handle("GET "+model, s.modelInfo)
	handle("GET "+model+"/revision/{rev}", s.modelInfo)
	handle("GET "+model+"/tree/{rev}", s.tree)
	handle("GET "+model+"/tree/{rev}/{path...}", s.tree)
	handle("POST "+model+"/paths-info/{rev}", s.pathsInfo)
	handle("GET "+model+"/refs", s.refs)
	handle("GET "+model+"/commits/{rev}", s.commits)
	handle("GET "+model+"/auth-check", s.authCheckRead)
	handle("GET "+model+"/auth-check/write", s.authCheckWrite)
	handle("POST "+model+"/branch/{branch}", s.createBranch)
	handle("DELETE "+model+"/branch/{branch}", s.deleteBranch)
	handle("PUT "+model+"/settings", s.settings)
	handle("POST "+model+"/preupload/{rev}", s.preupload)
	handle("POST "+model+"/commit/{rev}", s.postCommit)
	handle("POST "+model+"/lfs-files/duplicate", s.duplicate)
	handle("POST "+model+"/discussions", s.createDiscussion)
	handle("GET "+model+"/discussions", s.listDiscussions)
	handle("GET "+model+"/discussions/{num}", s.discussion)
	handle("POST "+model+"/discussions/{num}/status", s.setDiscussionStatus)
	handle("POST "+model+"/discussions/{num}/merge", s.mergeDiscussion)
	handle("/", notFound)
	return mux
}

func (s *Server) siteMux() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, h handler) { mux.Handle(pattern, h) }
	handle("GET /{ns}/{name}/resolve/{rev}/{path...}", s.resolve)
	handle("GET /{ns}/{name}/raw/{rev}/{path...}", s.raw)
	handle("POST /{ns}/{git}/info/lfs/objects/batch", s.lfsBatch)
	handle("POST /{ns}/{git}/info/lfs/objects/verify", s.lfsVerify)
	handle("/", notFound)
	return mux
}

func notFound(http.ResponseWriter, *http.Request) error {
	return fail(http.StatusNotFound, "Sorry, we can't find the page you are looking for.")
}
