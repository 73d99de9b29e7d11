package hub_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// origins are servers in memory. They count the requests with a token for each origin.
type origins struct {
	servers []*hubtest.Server

	mu     sync.Mutex
	tokens map[string]int
}

func (o *origins) RoundTrip(r *http.Request) (*http.Response, error) {
	origin := r.URL.Scheme + "://" + r.URL.Host
	o.mu.Lock()
	if o.tokens[origin] += 0; r.Header.Get("Authorization") != "" {
		o.tokens[origin]++
	}
	o.mu.Unlock()
	for _, s := range o.servers {
		if origin == s.URL || origin == s.CDNURL {
			return s.RoundTrip(r)
		}
	}
	return nil, fmt.Errorf("no server is at %s", origin)
}

// TestMirrorThatRedirectsIsNoLoop checks a mirror in HF_ENDPOINT that sends every request on to the
// public hub, like hf-mirror.com. Everything that a source and a target need works. The token goes
// to the mirror and the public hub only.
func TestMirrorThatRedirectsIsNoLoop(t *testing.T) {
	const public = "https://huggingface.co"
	mirror := hubtest.Start(t, hubtest.InMemory("https://mirror.test", "https://none.test"))
	mirror.Inject(hubtest.Fault{Name: "mirror", Times: hubtest.Always})
	me := hubtest.WithUser("hf_test", hubtest.User{Name: "me", CanRead: []string{source}})
	srv := hubtest.Start(t, hubtest.InMemory(public, "https://storage.test"), me, hubtest.WithPageSize(1))
	net := &origins{servers: []*hubtest.Server{mirror, srv}, tokens: map[string]int{}}
	w := newWorldOn(t, srv, 30_000, func(o *hub.Options) { o.Endpoint, o.HTTPTransport = mirror.URL, net })
	w.readAll(t)
	if err := w.publishAll(t); err != nil {
		t.Error(err)
	}
	if n := mirror.Count("", "*"); n == 0 || n > 30 {
		t.Errorf("%d requests to the mirror", n)
	}
	for origin, n := range net.tokens {
		if home := origin == mirror.URL || origin == public; (n > 0) != home {
			t.Errorf("%s was sent the token %d times", origin, n)
		}
	}
}

// readAll reads the source in every way.
func (w *world) readAll(t *testing.T) {
	t.Helper()
	info, err := w.Info(t.Context(), source, "")
	if err != nil || len(info.Files) < 3 || info.SHA != w.commit {
		t.Fatalf("%+v, %v", info, err)
	}
	tree, err := w.Tree(t.Context(), source, info.SHA)
	if err != nil || len(tree) != len(info.Files) {
		t.Errorf("%d entries, %v", len(tree), err)
	}
	small, _ := info.File("config.json")
	if got, err := w.ReadFile(t.Context(), small, 100); err != nil || string(got) != `{"a": 1}` {
		t.Errorf("%q, %v", got, err)
	}
	if err := w.stream(t); err != nil {
		t.Error(err)
	}
}

// publishAll publishes a target with a large file and a small one.
func (w *world) publishAll(t *testing.T) error {
	t.Helper()
	if _, err := w.CreateRepo(t.Context(), target, nil); err != nil {
		return err
	}
	if err := w.CheckAccess(t.Context(), target); err != nil {
		return err
	}
	op, err := first(w.Upload(t.Context(), target, "main", blob(weight, w.data)))
	if err != nil {
		return err
	}
	ops := []hub.Op{op, hub.FileOp("config.json", []byte("{}"))}
	_, err = w.Commit(t.Context(), target, "main", hub.CommitRequest{Parent: w.srv.Head(target, "main"), Summary: "x", Ops: ops})
	if got, readErr := w.srv.ReadFile(target, "main", weight); err == nil && (readErr != nil || !bytes.Equal(got, w.data)) {
		t.Errorf("%d bytes arrived, %v", len(got), readErr)
	}
	return err
}

// TestSecureHubNeverLeadsToPlainHTTP checks that no link of an https hub sends or gets bytes over
// plain http.
func TestSecureHubNeverLeadsToPlainHTTP(t *testing.T) {
	for name, n := range map[string]int{"one PUT": 10_000, "parts": 30_000} {
		t.Run(name, func(t *testing.T) {
			srv := hubtest.Start(t, hubtest.InMemory("https://hub.test", "http://localhost"), hubtest.WithMultipart(20_000, 8_000))
			w := newWorldOn(t, srv, n, func(o *hub.Options) { o.HTTPTransport = srv })
			for what, err := range map[string]error{"upload": w.publishAll(t), "download": w.stream(t)} {
				noSecret(t, err)
				if !errors.Is(err, hub.ErrNotHub) || !strings.Contains(err.Error(), "plain http at localhost") || hub.Hint(err) == "" {
					t.Errorf("%s: %v", what, err)
				}
			}
			if n := w.srv.Count("PUT", "*") + w.nGets(); n != 0 || w.clock.Waited() > 0 {
				t.Errorf("%d requests went there, waited %v", n, w.clock.Waited())
			}
		})
	}
}
