package hubtest

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Host is one of the two listeners.
type Host string

// The hub's own origin, and the storage that signed URLs point to.
const (
	HostHub Host = "hub"
	HostCDN Host = "cdn"
)

// A Request is one line of the request log.
type Request struct {
	Seq        int // 1 for the first request of the server
	Host       Host
	Method     string
	Path       string // decoded
	RawQuery   string
	Header     http.Header // of the request
	Status     int         // 0 if no answer was written, or the connection was cut
	Received   int64       // bytes of the request body that were read
	Sent       int64       // bytes of the answer's body
	Fault      string      // name of the fault that acted
	Begin, End time.Time
}

// requestLog remembers all requests, and the mistakes of clients.
type requestLog struct {
	mu         sync.Mutex
	entries    []*tracked
	violations []string
}

// Requests returns the log so far, in order of arrival. Requests that are still being served have a
// zero End.
func (l *requestLog) Requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Request, len(l.entries))
	for i, t := range l.entries {
		out[i] = t.snapshot()
	}
	return out
}

// Count counts the logged requests with the method ("" for any) whose path matches the pattern of a
// [Fault], at either host.
func (l *requestLog) Count(method, pattern string) int {
	n, paths := 0, pathPattern(pattern)
	for _, q := range l.Requests() {
		if (method == "" || q.Method == method) && paths.MatchString(q.Path) {
			n++
		}
	}
	return n
}

// Violations returns every breach of a rule that clients must keep: a token or cookie sent to the
// storage host, a changed signed URL.
func (l *requestLog) Violations() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.violations)
}

// ResetLog clears all requests and violations. Numbering restarts at 1.
func (l *requestLog) ResetLog() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries, l.violations = nil, nil
}

func (l *requestLog) violation(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violations = append(l.violations, fmt.Sprintf(format, args...))
}

// begin starts a request's log line, and records a token or cookie that reaches the storage host.
func (l *requestLog) begin(host Host, w http.ResponseWriter, r *http.Request) *tracked {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &tracked{ResponseWriter: w, done: r.Context().Done(), req: Request{
		Seq: len(l.entries) + 1, Host: host, Method: r.Method, Path: r.URL.Path,
		RawQuery: r.URL.RawQuery,
		Header:   r.Header.Clone(), Begin: time.Now(),
	}}
	l.entries = append(l.entries, t)
	for _, h := range []string{"Authorization", "Cookie"} {
		if host == HostCDN && r.Header.Get(h) != "" {
			l.violations = append(l.violations,
				fmt.Sprintf("request %d: %s header sent to the storage host: %s %s", t.req.Seq, h,
					r.Method, r.URL.Path))
		}
	}
	return t
}

// tracked is a response writer that fills in a log line and limits the speed.
type tracked struct {
	http.ResponseWriter
	links
	done <-chan struct{} // of the request

	mu  sync.Mutex
	req Request
}

// note changes the log line.
func (t *tracked) note(change func(q *Request)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.req)
}

func (t *tracked) snapshot() (q Request) {
	t.note(func(line *Request) { q = *line })
	return q
}

func (t *tracked) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *tracked) WriteHeader(status int) {
	t.note(func(q *Request) { q.Status = cmp.Or(q.Status, status) })
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracked) Write(p []byte) (total int, err error) {
	t.note(func(q *Request) { q.Status = cmp.Or(q.Status, http.StatusOK) })
	for err == nil && len(p) > 0 {
		chunk := t.down.clip(p)
		t.down.wait(t.done, len(chunk))
		var n int
		n, err = t.ResponseWriter.Write(chunk)
		t.note(func(q *Request) { q.Sent += int64(n) })
		total, p = total+n, p[n:]
	}
	return total, err
}

// trackedBody is a request body that fills in a log line.
type trackedBody struct {
	io.ReadCloser
	line *tracked
}

func (b *trackedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(b.line.up.clip(p))
	b.line.note(func(q *Request) { q.Received += int64(n) })
	b.line.up.wait(b.line.done, n)
	return n, err
}

// pathPattern is the pattern of a [Fault] as a regular expression.
func pathPattern(pattern string) *regexp.Regexp {
	text := strings.ReplaceAll(regexp.QuoteMeta(cmp.Or(pattern, "*")), `\*`, ".*")
	return regexp.MustCompile("(?s)^" + text + "$")
}
