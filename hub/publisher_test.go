package hub_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// publishing is a hub whose repo target trusts the jobs of me/ci, with a client that has no stored
// token.
func publishing(t *testing.T, change func(*hubtest.Server, *hub.Publisher)) *world {
	t.Helper()
	clock := hubtest.NewJumpClock(time.Now())
	srv := hubtest.Start(t, hubtest.WithClock(clock.Now), hubtest.WithPublisher(target, "me/ci"),
		hubtest.WithUser("hf_owner", hubtest.User{Name: "me", Granted: []string{"org/gated"}}), hubtest.WithPublisher("me", "me/ci"))
	srv.AddRepo(target, map[string][]byte{"README.md": []byte("empty")}, hubtest.Private())
	srv.AddRepo("me/other", map[string][]byte{"README.md": []byte("empty")})
	srv.AddRepo("org/gated", map[string][]byte{"README.md": []byte("empty")}, hubtest.Gated("auto"))
	job := srv.JobEnv("me/ci")
	p := &hub.Publisher{Resource: target, RequestURL: job["ACTIONS_ID_TOKEN_REQUEST_URL"], RequestToken: job["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]}
	if change != nil {
		change(srv, p)
	}
	w := newWorldOn(t, srv, 1000, func(o *hub.Options) { o.Token, o.TokenSource, o.Publisher, o.Clock = "", "", p, clock })
	w.clock = clock
	return w
}

// exchanges counts the requests for tokens.
func (w *world) exchanges() (n int) {
	for _, r := range w.srv.Requests() {
		if r.Path == "/oauth/token" {
			n++
		}
	}
	return n
}

// TestPublisherNeverShowsATokenThatEnds checks ten hours with many requests at once: every request
// has a valid token, and there's one exchange per hour at most.
func TestPublisherNeverShowsATokenThatEnds(t *testing.T) {
	w := publishing(t, nil)
	for hour := time.Duration(0); hour < 10*time.Hour; hour += 5 * time.Minute {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := w.CheckAccess(t.Context(), target); err != nil {
					t.Errorf("after %v: %v", hour, err)
				}
			})
		}
		all.Wait()
		must(t, w.clock.Sleep(t.Context(), 5*time.Minute))
	}
	if n := w.exchanges(); n < 10 || n > 12 {
		t.Errorf("%d exchanges in ten hours", n)
	}
}

// TestTokenOutlastsTheWaitForATurn checks a rate limit that lasts longer than the current token.
func TestTokenOutlastsTheWaitForATurn(t *testing.T) {
	w := publishing(t, nil)
	limit := hubtest.Fault{Name: "nothing left for ten minutes", Path: "/api/*", Times: 1, Action: func(x *hubtest.Exchange) {
		x.Header().Set("RateLimit", `"api";r=0;t=590`)
		x.WriteHeader(http.StatusTooManyRequests)
	}}
	must(t, w.CheckAccess(t.Context(), target))
	must(t, w.clock.Sleep(t.Context(), 54*time.Minute))
	w.srv.Inject(limit)
	before := w.clock.Waited()
	must(t, w.CheckAccess(t.Context(), target))
	if waited := w.clock.Waited() - before; waited < 9*time.Minute {
		t.Errorf("waited %v only", waited)
	}
}

// TestPublisherReadsWhatAUserMay checks that a user's token reads the gated repos that the user may
// read, and that the client knows it's a user's.
func TestPublisherReadsWhatAUserMay(t *testing.T) {
	w := publishing(t, func(_ *hubtest.Server, p *hub.Publisher) { p.Resource = "me" })
	info, err := w.Info(t.Context(), "org/gated", "")
	must(t, err)
	for _, f := range info.Files {
		if _, err := w.ReadFile(t.Context(), f.Ref(info.ID, info.SHA), 1<<20); err != nil {
			t.Error(err)
		}
	}
	if w.OnlyRepo() != "" {
		t.Errorf("only repo %q", w.OnlyRepo())
	}
}

// TestPublisherIsRefusedClearly checks that a refusal by the hub or GitHub is one error that names
// the resource and the next step and shows no secret. The client doesn't ask again. After other
// failures it does.
func TestPublisherIsRefusedClearly(t *testing.T) {
	for name, change := range map[string]func(*hubtest.Server, *hub.Publisher){
		"other repository": func(s *hubtest.Server, p *hub.Publisher) {
			p.RequestURL = s.JobEnv("evil/ci")["ACTIONS_ID_TOKEN_REQUEST_URL"]
		},
		"other resource":    func(_ *hubtest.Server, p *hub.Publisher) { p.Resource = "me/other" },
		"other audience":    func(s *hubtest.Server, p *hub.Publisher) { p.Identity = s.NewIdentity("me/ci", "https://example.org") },
		"unknown identity":  func(_ *hubtest.Server, p *hub.Publisher) { p.Identity = "eyJ.none" },
		"no job of GitHub":  func(_ *hubtest.Server, p *hub.Publisher) { p.RequestToken = "wrong-secret" },
		"broken address":    func(_ *hubtest.Server, p *hub.Publisher) { p.RequestURL = "http://[::1" },
		"nothing on record": func(_ *hubtest.Server, p *hub.Publisher) { p.Resource = "no-one" },
	} {
		t.Run(name, func(t *testing.T) {
			w := publishing(t, change)
			err := w.CheckAccess(t.Context(), target)
			if err == nil || name != "broken address" && (!errors.Is(err, hub.ErrTrustedPublisher) || !hint.Publisher.Is(hub.Hint(err))) {
				t.Errorf("got %v, hint %q", err, hub.Hint(err))
			}
			for _, secret := range []string{"wrong-secret", "eyJ", "github-job-token"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q is shown: %v", secret, err)
				}
			}
			if n := w.exchanges(); n > 1 {
				t.Errorf("%d exchanges", n)
			}
		})
	}
}

// TestPublisherOutlastsTrouble checks that a failed exchange is repeated like any request. No
// request for a token carries someone else's token, and no token goes to where the identity comes
// from.
func TestPublisherOutlastsTrouble(t *testing.T) {
	w := publishing(t, nil)
	for _, path := range []string{"/oauth/token", "/_github/*"} {
		w.srv.Inject(hubtest.Fault{Path: path, Times: 2, Action: hubtest.Status(http.StatusServiceUnavailable, nil, "")})
	}
	must(t, w.CheckAccess(t.Context(), target))
	for _, r := range w.srv.Requests() {
		auth := r.Header.Get("Authorization")
		if strings.HasPrefix(r.Path, "/_github") && auth != "Bearer github-job-token" || r.Path == "/oauth/token" && auth != "" ||
			strings.HasPrefix(r.Path, "/api") && !strings.HasPrefix(auth, "Bearer hf_jwt_") {
			t.Errorf("%s was asked with %q", r.Path, auth)
		}
	}
}

// TestIdentityStaysHome checks that no redirect leads the identity, which is worth a token, or
// GitHub's token for the job to another origin, and that no other origin's token is used.
func TestIdentityStaysHome(t *testing.T) {
	for _, path := range []string{"/oauth/token", "/_github/*"} {
		for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			w, stranger := publishing(t, nil), publishing(t, nil)
			w.srv.Inject(hubtest.Fault{Path: path, Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
				_, _ = io.Copy(io.Discard, x.Request.Body)
				x.Header().Set("Location", stranger.srv.URL+x.Request.URL.RequestURI())
				x.WriteHeader(status)
			}})
			if err := w.CheckAccess(t.Context(), target); err == nil {
				t.Errorf("%s, %d: a stranger was believed", path, status)
			}
			if n := stranger.srv.Count("", "*"); n > 0 {
				t.Errorf("%s, %d: the stranger was asked %d times", path, status, n)
			}
		}
	}
}

// TestIdentityMadeBeforehand checks that another CI's identity serves for one token, and that the
// error names what's missing when that token expired.
func TestIdentityMadeBeforehand(t *testing.T) {
	w := publishing(t, func(s *hubtest.Server, p *hub.Publisher) {
		*p = hub.Publisher{Resource: target, Identity: s.NewIdentity("me/ci", s.URL)}
	})
	must(t, w.CheckAccess(t.Context(), target))
	_ = w.clock.Sleep(t.Context(), 2*time.Hour)
	if err := w.CheckAccess(t.Context(), target); !errors.Is(err, hub.ErrTrustedPublisher) {
		t.Errorf("got %v", err)
	}
}
