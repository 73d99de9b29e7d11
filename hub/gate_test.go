package hub_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// between is a network where something else answers some requests.
type between struct {
	method, path string // of those requests; path is a part of it
	answer       func(*http.Request) (*http.Response, error)
	answered     atomic.Int32
	left         atomic.Int32 // requests that went elsewhere
	http.Transport
}

func (b *between) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "login.test" {
		b.left.Add(1)
		return hubtest.Reply(r, 200, "<html>", "Content-Type: text/html"), nil
	}
	if r.Method != b.method || !strings.Contains(r.URL.Path, b.path) {
		return b.Transport.RoundTrip(r)
	}
	b.answered.Add(1)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return b.answer(r)
}

// TestEveryAnswerPassesTheGate checks that on every route the answer of a login page, a firewall,
// or a proxy is recognized within seconds, after one more try at most. It never counts as success,
// a missing right, or an old link.
func TestEveryAnswerPassesTheGate(t *testing.T) {
	const page = "\n<!DOCTYPE html><html><body>Please log in to secret-net</body></html>"
	const html = "Content-Type: text/html; charset=utf-8"
	answers := map[string]func(*http.Request) (*http.Response, error){
		"200":                      hubtest.Says(200, page, html),
		"200 with a fragment":      hubtest.Says(200, "<p>log in", html),
		"200 of unknown length":    unsized(hubtest.Says(200, page, html)),
		"200 without a type":       hubtest.Says(200, page),
		"403 without a type":       hubtest.Says(403, page),
		"403 without anything":     hubtest.Says(403, ""), // the same to HEAD
		"206":                      hubtest.Says(206, page, html),
		"400":                      hubtest.Says(400, page, html),
		"401":                      hubtest.Says(401, page, html),
		"403":                      hubtest.Says(403, page, html),
		"404":                      hubtest.Says(404, page, html), // from a storage; the Hub may lack the route
		"302 to a login page":      hubtest.Says(302, "", "Location: https://login.test/hello"),
		"307 to a stranger":        hubtest.Says(307, "", "Location: https://login.test/hello"),
		"302 to one over http":     hubtest.Says(302, "", "Location: ftp://login.test/hello"),
		"307 to a file of its own": hubtest.Says(307, "", "Location: file:///etc/passwd"),
	}
	private := true
	read := func(path string, n int64) func(context.Context, *world) error {
		return func(ctx context.Context, w *world) error {
			_, err := w.ReadFile(ctx, hub.FileRef{Repo: source, Commit: w.commit, Path: path}, n)
			return err
		}
	}
	push := func(n int) func(context.Context, *world) error {
		return func(ctx context.Context, w *world) error {
			op, err := first(w.Upload(ctx, target, "main", blob(weight, pattern(n))))
			if err == nil {
				_, err = w.Client.Commit(ctx, target, "main", hub.CommitRequest{Parent: w.srv.Head(target, "main"), Ops: []hub.Op{op}})
			}
			return err
		}
	}
	for _, route := range []struct {
		name, method, path string
		call               func(context.Context, *world) error
	}{
		{"info", "GET", "/revision/", func(ctx context.Context, w *world) error { _, err := w.Info(ctx, source, ""); return err }},
		{"tree", "GET", "/tree/", func(ctx context.Context, w *world) error { _, err := w.Tree(ctx, source, "main"); return err }},
		{"owner", "GET", "/whoami", func(ctx context.Context, w *world) error { _, err := w.WhoAmI(ctx); return err }},
		{"list", "GET", "/api/models", func(ctx context.Context, w *world) error { _, err := w.Quantized(ctx, source, ""); return err }},
		{"card", "POST", "/validate-yaml", func(ctx context.Context, w *world) error { return w.ValidateCard(ctx, []byte("x")) }},
		{"access", "GET", "/auth-check", func(ctx context.Context, w *world) error { return w.CheckAccess(ctx, target) }},
		{"create", "POST", "/repos/create", func(ctx context.Context, w *world) error { _, err := w.CreateRepo(ctx, "me/new", &private); return err }},
		{"branch", "POST", "/branch/", func(ctx context.Context, w *world) error { return w.CreateBranch(ctx, target, "b", "") }},
		{"no branch", "DELETE", "/branch/", func(ctx context.Context, w *world) error { return w.DeleteBranch(ctx, target, "main") }},
		{"look up", "HEAD", "/resolve/", read(weight, 1<<20)},
		{"small file", "GET", "/resolve", read("config.json", 1<<20)},
		{"storage", "GET", "/repos/", read(weight, 1<<20)},
		{"preupload", "POST", "/preupload/", push(15_000)},
		{"batch", "POST", "/objects/batch", push(15_000)},
		{"put", "PUT", "/upload/", push(15_000)},
		{"part", "PUT", "/multipart/", push(50_000)},
		{"completion", "POST", "/complete_multipart", push(50_000)},
		{"verify", "POST", "/objects/verify", push(15_000)},
		{"commit", "POST", "/commit/", push(15_000)},
	} {
		for name, answer := range answers {
			if name == "404" && route.path != "/repos/" && route.method != http.MethodPut {
				continue
			}
			if name == "403 without anything" && route.method != http.MethodHead {
				continue
			}
			t.Run(route.name+" "+name, func(t *testing.T) {
				net := &between{method: "none"}
				w := newWorld(t, 30_000, func(o *hub.Options) { o.HTTPTransport = net })
				if _, err := w.CreateRepo(t.Context(), target, nil); err != nil {
					t.Fatal(err)
				}
				net.method, net.path, net.answer = route.method, route.path, answer
				err := route.call(t.Context(), w)
				if !errors.Is(err, hub.ErrNotHub) || hub.Hint(err) == "" {
					t.Errorf("%v\nhint: %s", err, hub.Hint(err))
				}
				if err != nil && strings.Contains(err.Error(), "secret-net") {
					t.Errorf("it shows the page: %v", err)
				}
				if isFile := strings.Contains(route.path, "/resolve") || route.path == "/repos/"; net.left.Load() > 0 && !isFile {
					t.Error("another origin was asked")
				}
				if n := net.answered.Load(); n == 0 || n > 2*7 || w.clock.Waited() > 10*time.Second {
					t.Errorf("%d requests, waited %v", n, w.clock.Waited())
				}
			})
		}
	}
}

// unsized is an answer without a length in its headers.
func unsized(step func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := step(r)
		resp.ContentLength = -1
		return resp, err
	}
}
