package hub_test

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// pair is a program's source and target clients, with one clock.
type pair struct {
	source, target *hub.Client
	clock          *hubtest.JumpClock
	reason         string        // of the source's first wait
	held           time.Duration // how long meanwhile took
}

// newPair makes both. While the source waits for the hub, meanwhile runs.
func newPair(t *testing.T, srv *hubtest.Server, tokens [2]string, meanwhile func(p *pair)) *pair {
	t.Helper()
	p := &pair{clock: hubtest.NewJumpClock(time.Now())}
	governor := hub.NewGovernor()
	onWait := func(w hub.Wait) {
		if p.reason != "" {
			return
		}
		p.reason = w.Reason
		before := p.clock.Waited()
		meanwhile(p)
		p.held = p.clock.Waited() - before
	}
	client := func(token string, onWait func(hub.Wait)) *hub.Client {
		c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: srv.URL, Token: token, Clock: p.clock, Governor: governor, OnWait: onWait}})
		must(t, err)
		return c
	}
	p.source, p.target = client(tokens[0], onWait), client(tokens[1], nil)
	return p
}

// limited refuses the first request to a path with 429 and asks for a wait of a minute.
func limited(path string, header hubtest.Header) hubtest.Fault {
	return hubtest.Fault{Name: "limited", Path: path, Action: hubtest.Status(http.StatusTooManyRequests, header, "")}
}

// TestOneGovernorForAllClients checks that a limit for one client holds back the other, in the same
// bucket and for the same token only.
func TestOneGovernorForAllClients(t *testing.T) {
	same := [2]string{"hf_test", "hf_test"}
	seconds := hubtest.Header{"Retry-After": "60", "RateLimit": ""}
	for _, tt := range []struct {
		name   string
		tokens [2]string
		header hubtest.Header
		path   string // of the refused request
		other  string // what the other client asks for meanwhile
		held   bool
	}{
		{"Retry-After in seconds", same, seconds, "/api/models/*", "api", true},
		{"RateLimit", same, hubtest.Header{"RateLimit": `"api";r=0;t=60`}, "/api/models/*", "api", true},
		{"api and resolvers are apart", same, seconds, "/api/models/*", "resolvers", false},
		{"resolvers", same, seconds, "*/resolve/*", "resolvers", true},
		{"resolvers and api are apart", same, seconds, "*/resolve/*", "api", false},
		{"another token", [2]string{"hf_test", "hf_other"}, seconds, "/api/models/*", "api", false},
		{"anonymous", [2]string{"", ""}, seconds, "/api/models/*", "api", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, 3000)
			ask := func(c *hub.Client, bucket string) {
				t.Helper()
				var err error
				if bucket == "api" {
					_, err = c.Head(t.Context(), source, "main")
				} else {
					_, err = c.ReadRange(t.Context(), w.ref(), 0, 10)
				}
				if err != nil {
					t.Error(err)
				}
			}
			p := newPair(t, w.srv, tt.tokens, func(p *pair) {
				ask(p.target, tt.other)
			})
			w.srv.Inject(limited(tt.path, tt.header))
			bucket := "api"
			if strings.Contains(tt.path, "resolve") {
				bucket = "resolvers"
			}
			ask(p.source, bucket)
			if tt.held != (p.held >= 55*time.Second) || !tt.held && p.held > 0 {
				t.Errorf("the other client waited %v", p.held)
			}
			if !strings.Contains(p.reason, "rate limit") {
				t.Errorf("reason %q", p.reason)
			}
			if w.srv.FaultsActed("limited") != 1 {
				t.Error("the fault did not act")
			}
		})
	}
}

// TestCommitQuotaHoldsCommitsOnly checks an hourly quota, which the hub reports at a commit,
// without a time. The client waits. Uploads go on, other commits don't. Each of the fourteen waits
// is a random share of up to several minutes.
func TestCommitQuotaHoldsCommitsOnly(t *testing.T) {
	w := published(t)
	op := hub.FileOp("b.txt", []byte("b"))
	var meanwhile, commit time.Duration
	p := newPair(t, w.srv, [2]string{"hf_test", "hf_test"}, func(p *pair) {
		before := p.clock.Waited()
		if _, err := p.target.Upload(t.Context(), target, "main", blob(weight, pattern(15_000))); err != nil {
			t.Error(err)
		}
		meanwhile = p.clock.Waited() - before
		if _, err := p.target.Commit(t.Context(), target, "main", hub.CommitRequest{Parent: w.srv.Head(target, "main"), Summary: "b", Ops: []hub.Op{op}}); err != nil {
			t.Error(err)
		}
		commit = p.clock.Waited() - before
	})
	w.srv.Inject(hubtest.Fault{Name: "commit-429", Times: 14})
	_, err := p.source.Commit(t.Context(), target, "main", hub.CommitRequest{Parent: w.srv.Head(target, "main"), Summary: "a", Ops: []hub.Op{hub.FileOp("a.txt", []byte("a"))}})
	if err != nil && !errors.Is(err, hub.ErrConflict) { // the other client was first
		t.Error(err)
	}
	if meanwhile != 0 || commit < 5*time.Minute || w.srv.FaultsActed("commit-429") != 14 {
		t.Errorf("the upload waited %v, the commit %v; refused %d times", meanwhile, commit, w.srv.FaultsActed("commit-429"))
	}
	if !strings.Contains(p.reason, "128 per hour") {
		t.Errorf("reason %q", p.reason)
	}
}

// TestCallsOfOneClient checks that clients for several calls each have their own name, log, and waits,
// also while they get a token, and that what the Hub has said once serves all of them.
func TestCallsOfOneClient(t *testing.T) {
	w := publishing(t, func(_ *hubtest.Server, p *hub.Publisher) { p.Resource = "me" })
	for i, name := range []string{"first/1", "second/2"} {
		var waits, log strings.Builder
		c, err := w.With(hub.Call{UserAgent: name, Log: slog.New(slog.NewTextHandler(&log, nil)), OnWait: func(w hub.Wait) { waits.WriteString(w.Reason + "\n") }})
		must(t, err)
		must(t, w.clock.Sleep(t.Context(), 2*time.Hour)) // so that each gets a token
		w.srv.Inject(limited("/oauth/token", hubtest.Header{"Retry-After": "60", "RateLimit": ""}))
		before := len(w.srv.Requests())
		_, err = c.WhoAmI(t.Context())
		must(t, err)
		_, err = c.Head(t.Context(), "org/gated", "main")
		must(t, err)
		if n := strings.Count(waits.String(), "\n"); n != 1 || !strings.Contains(log.String(), "hub request repeated") {
			t.Errorf("%s heard of %d waits: %s%s", name, n, waits.String(), log.String())
		}
		for _, r := range w.srv.Requests()[before:] {
			if r.Header.Get("User-Agent") != name {
				t.Errorf("%s asked for %s as %s", name, r.Path, r.Header.Get("User-Agent"))
			}
			if i > 0 && r.Path == "/api/whoami-v2" {
				t.Errorf("%s asked again whose the token is", name)
			}
		}
	}
}
