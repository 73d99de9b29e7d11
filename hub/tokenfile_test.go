package hub_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// loggedIn is a machine where me has logged in by browser, 30 days ago less left, in a folder as
// huggingface_hub leaves it: two other tokens, a token name that isn't ASCII.
type loggedIn struct {
	t              *testing.T
	srv            *hubtest.Server
	clock          *hubtest.JumpClock
	home           string
	token, refresh string
}

func logIn(t *testing.T, left time.Duration) *loggedIn {
	t.Helper()
	clock := hubtest.NewJumpClock(time.Now().Truncate(time.Second))
	srv := hubtest.Start(t, hubtest.WithClock(clock.Now), hubtest.WithUser("hf_other", hubtest.User{Name: "other"}))
	srv.AddRepo("me/closed", map[string][]byte{"README.md": []byte("x")}, hubtest.Private())
	l := &loggedIn{t: t, srv: srv, clock: clock, home: t.TempDir()}
	l.token, l.refresh = srv.Login(hubtest.User{Name: "me"}, 30*24*time.Hour)
	end := clock.Now().Add(30 * 24 * time.Hour)
	must(t, clock.Sleep(t.Context(), 30*24*time.Hour-left))
	must(t, os.WriteFile(l.path("token"), []byte(l.token), 0o600))
	must(t, os.WriteFile(l.path("stored_tokens"), fmt.Appendf(nil, "[ci]\nhf_token = hf_ci\n\n[Büro 1]\nhf_token = %s\nrefresh_token = %s\nexpires_at = %d\nnote = 50%%\n\n[old]\nhf_token = hf_old\n\n", l.token, l.refresh, end.Unix()), 0o600))
	return l
}

func (l *loggedIn) path(name string) string { return filepath.Join(l.home, name) }

func (l *loggedIn) read(name string) string {
	l.t.Helper()
	data, err := os.ReadFile(l.path(name))
	must(l.t, err)
	return string(data)
}

// options are those of a program that starts now.
func (l *loggedIn) options() hub.Options {
	l.t.Helper()
	opt, err := hub.Environ(func(name string) string {
		return map[string]string{"HF_HOME": l.home, "HF_ENDPOINT": l.srv.URL}[name]
	}, "/nowhere")
	must(l.t, err)
	opt.Clock = l.clock
	return opt
}

// client is a program that starts now.
func (l *loggedIn) client() *hub.Client {
	l.t.Helper()
	c, err := hub.New(l.options())
	must(l.t, err)
	return c
}

// ask reads what only me may see.
func (l *loggedIn) ask(c *hub.Client) error {
	_, err := c.Info(l.t.Context(), "me/closed", "")
	return err
}

// renewals counts the requests for a new token.
func (l *loggedIn) renewals() int { return l.srv.Count("POST", "/oauth/token") }

// TestLoginIsRenewed checks a run of 100 days: it never sends a token that has ended, renews once
// in 29 days, and leaves everything else in the files as it is.
func TestLoginIsRenewed(t *testing.T) {
	l := logIn(t, 26*time.Hour)
	c := l.client()
	for range 100 * 24 {
		must(t, l.ask(c))
		must(t, l.clock.Sleep(t.Context(), time.Hour))
	}
	if n := l.renewals(); n != 4 {
		t.Errorf("%d renewals", n)
	}
	stored, token := l.read("stored_tokens"), l.read("token")
	if rest := "[ci]\nhf_token = hf_ci\n\n[Büro 1]\nhf_token = " + token + "\nrefresh_token = "; !strings.HasPrefix(stored, rest) || token == l.token ||
		!strings.HasSuffix(stored, "\nnote = 50%\n\n[old]\nhf_token = hf_old\n\n") || strings.Contains(stored, l.refresh) {
		t.Errorf("token %q, stored %q", token, stored)
	}
	for _, name := range []string{"token", "stored_tokens"} {
		if st, err := os.Stat(l.path(name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(l.path(".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestManyRenewAtOnce checks programs that share a home and start when the token has ended: the Hub
// takes each refresh token once, and all go on.
func TestManyRenewAtOnce(t *testing.T) {
	l := logIn(t, -time.Hour)
	var all sync.WaitGroup
	for range 6 {
		c := l.client()
		for range 3 {
			all.Go(func() {
				if err := l.ask(c); err != nil {
					t.Error(err, hub.Hint(err))
				}
			})
		}
	}
	all.Wait()
	if n := l.renewals(); n != 1 {
		t.Errorf("%d renewals", n)
	}
}

// TestTokenFileIsReadAgain checks a file that another program changes while a run works: its new
// token counts once the old one is refused, not before.
func TestTokenFileIsReadAgain(t *testing.T) {
	l := logIn(t, 24*time.Hour)
	must(t, os.Remove(l.path("stored_tokens"))) // as in a cluster's secret
	c := l.client()
	must(t, l.ask(c))
	token, _ := l.srv.Login(hubtest.User{Name: "me"}, 24*time.Hour)
	must(t, os.WriteFile(l.path("token"), []byte(token+"\n"), 0o600))
	must(t, l.ask(c))
	if sent := l.srv.Requests(); sent[len(sent)-1].Header.Get("Authorization") != "Bearer "+l.token {
		t.Error("a token was replaced that is still good")
	}
	must(t, l.clock.Sleep(t.Context(), 12*time.Hour))
	must(t, os.WriteFile(l.path("token"), []byte(token), 0o600))
	must(t, l.clock.Sleep(t.Context(), 11*time.Hour))
	must(t, l.ask(c))
	must(t, l.clock.Sleep(t.Context(), 90*time.Minute)) // now the first one has ended
	if err := l.ask(c); !errors.Is(err, hub.ErrUnauthorized) {
		t.Errorf("with two tokens that have ended: %v", err) // the second ends at the same hour
	}
	token, _ = l.srv.Login(hubtest.User{Name: "me"}, 24*time.Hour)
	must(t, os.WriteFile(l.path("token"), []byte(token), 0o600))
	must(t, l.ask(c))
}

// TestTokenFilesAreReadInWhole checks programs that start, or whose token is refused, while
// huggingface_hub writes the files, which it empties first, under its lock: all find the login.
func TestTokenFilesAreReadInWhole(t *testing.T) {
	l := logIn(t, time.Hour)
	ended := l.options()
	must(t, l.clock.Sleep(t.Context(), 2*time.Hour))
	renewed, refresh := l.srv.Login(hubtest.User{Name: "me"}, 30*24*time.Hour)
	files := map[string]string{"token": renewed, "stored_tokens": fmt.Sprintf(
		"[Büro 1]\nhf_token = %s\nrefresh_token = %s\nexpires_at = %d\n\n",
		renewed, refresh, l.clock.Now().Add(30*24*time.Hour).Unix())}
	for range 3 {
		lock := flock.New(l.path("stored_tokens.lock"))
		must(t, lock.Lock())
		for name := range files {
			must(t, os.WriteFile(l.path(name), nil, 0o600))
		}
		var readers errgroup.Group
		readers.Go(func() error {
			if opt := l.options(); opt.Token != renewed {
				return fmt.Errorf("a program that starts has the token %q", opt.Token)
			}
			return nil
		})
		c, err := hub.New(ended)
		must(t, err)
		readers.Go(func() error { return l.ask(c) })
		time.Sleep(20 * time.Millisecond) // so that they find the files empty; they may come later, too
		for name, text := range files {
			must(t, os.WriteFile(l.path(name), []byte(text), 0o600))
		}
		must(t, lock.Close())
		must(t, readers.Wait())
	}
	if l.renewals() > 0 {
		t.Error("a login was renewed that is good for 30 days")
	}
}

// TestLoginThatCannotBeRenewed checks the ways in which a renewal fails: nothing in the files
// changes, and the hint says when the token has expired and what to do.
func TestLoginThatCannotBeRenewed(t *testing.T) {
	for name, spoil := range map[string]func(l *loggedIn){
		"revoked": func(l *loggedIn) { l.srv.Revoke(l.refresh) },
		"hub out of order": func(l *loggedIn) {
			l.srv.Inject(hubtest.Fault{Method: "POST", Path: "/oauth/token", Times: hubtest.Always, Action: hubtest.Error(500, "", "x")})
		},
		"an answer of nothing": func(l *loggedIn) {
			l.srv.Inject(hubtest.Fault{Method: "POST", Path: "/oauth/token", Times: hubtest.Always, Action: hubtest.Status(200, nil, "{}")})
		},
		"a web page": func(l *loggedIn) {
			l.srv.Inject(hubtest.Fault{Method: "POST", Path: "/oauth/token", Times: hubtest.Always, Action: hubtest.Status(200, hubtest.Header{"Content-Type": "text/html"}, "<html>")})
		},
		"a token with a line end": func(l *loggedIn) {
			l.srv.Inject(hubtest.Fault{Method: "POST", Path: "/oauth/token", Times: hubtest.Always, Action: hubtest.Status(200, nil, `{"access_token":"hf_a\nX: 1"}`)})
		},
	} {
		l := logIn(t, -49*time.Hour)
		spoil(l)
		stored := l.read("stored_tokens")
		c := l.client()
		for range 3 {
			err := l.ask(c)
			step := hub.Hint(err)
			end := l.clock.Now().Add(-49 * time.Hour).UTC().Format(time.DateOnly)
			if !errors.Is(err, hub.ErrUnauthorized) || !hint.TokenExpired.Is(step) || !strings.HasPrefix(step, "run hf auth login: the token from file "+l.path("token")+" expired on "+end) {
				t.Errorf("%s: %v\nhint: %s", name, err, step)
			}
			if text := fmt.Sprint(err, step); strings.Contains(text, "hf_oauth") || strings.Contains(text, "hf_refresh") {
				t.Errorf("%s: it shows a token: %s", name, text)
			}
			must(t, l.clock.Sleep(t.Context(), time.Minute))
		}
		if l.read("stored_tokens") != stored || l.read("token") != l.token {
			t.Errorf("%s: the files have changed", name)
		}
		if name == "revoked" && l.renewals() != 1 {
			t.Errorf("%d renewals of a login that is over", l.renewals())
		}
	}
}

// TestRenewedLoginThatCannotBeStored checks a file that can't be replaced once the Hub has given a
// new token, and so has taken the old one's refresh token back: the new token is in use, it's
// renewed in its turn, and it's stored as soon as that works.
func TestRenewedLoginThatCannotBeStored(t *testing.T) {
	for _, name := range []string{"stored_tokens", "token"} {
		l := logIn(t, time.Hour)
		aside := filepath.Join(t.TempDir(), "aside")
		l.srv.Inject(hubtest.Fault{Method: "POST", Path: "/oauth/token", Action: func(x *hubtest.Exchange) {
			x.Next(x.ResponseWriter)
			if err := errors.Join(os.Rename(l.path(name), aside), os.MkdirAll(filepath.Join(l.path(name), "x"), 0o700)); err != nil {
				t.Error(err)
			}
		}})
		back := func() {
			must(t, os.RemoveAll(l.path(name)))
			must(t, os.Rename(aside, l.path(name)))
		}
		c := l.client()
		used := func() string {
			must(t, l.ask(c))
			sent := l.srv.Requests()
			return strings.TrimPrefix(sent[len(sent)-1].Header.Get("Authorization"), "Bearer ")
		}
		token := used()
		back()
		if token == l.token || l.read("token") != l.token {
			t.Errorf("%s: the token in use isn't the new one", name)
		}
		must(t, l.clock.Sleep(t.Context(), 2*time.Hour)) // the old one has ended
		if again := used(); again != token || l.renewals() != 1 {
			t.Errorf("%s: %d renewals, another token: %v", name, l.renewals(), again != token)
		}
		if l.read("token") != token || !strings.Contains(l.read("stored_tokens"), "hf_token = "+token+"\n") {
			t.Errorf("%s: the new token isn't stored", name)
		}
		must(t, l.clock.Sleep(t.Context(), 29*24*time.Hour))
		if next := used(); next == token || l.read("token") != next || l.renewals() != 2 {
			t.Errorf("%s: %d renewals", name, l.renewals())
		}
	}
}

// TestRenewalIsFinished checks a run that ends while the Hub renews its token: the new one is
// stored. A run that has ended before asks for none.
func TestRenewalIsFinished(t *testing.T) {
	l := logIn(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	l.srv.Inject(hubtest.Fault{Method: "POST", Path: "/oauth/token", Action: func(x *hubtest.Exchange) {
		cancel()
		x.Next(x.ResponseWriter)
	}})
	if _, err := l.client().Info(ctx, "me/closed", ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if token := l.read("token"); token == l.token || !strings.Contains(l.read("stored_tokens"), token) {
		t.Error("the new token is lost")
	}
	must(t, l.ask(l.client()))
	if n := l.renewals(); n != 1 {
		t.Errorf("%d renewals", n)
	}
	l = logIn(t, time.Hour)
	if _, err := l.client().Info(ctx, "me/closed", ""); !errors.Is(err, context.Canceled) || l.renewals() != 0 {
		t.Errorf("%d renewals, %v", l.renewals(), err)
	}
}

// TestOldDraftsGo checks that a renewal removes the drafts of a run that was killed, and no one
// else's.
func TestOldDraftsGo(t *testing.T) {
	l := logIn(t, time.Hour)
	for name, age := range map[string]time.Duration{".df11-token-1": 2 * time.Hour, ".df11-token-2": time.Minute, ".token-3": 2 * time.Hour} {
		must(t, os.WriteFile(l.path(name), []byte("hf_x"), 0o600))
		must(t, os.Chtimes(l.path(name), time.Time{}, time.Now().Add(-age)))
	}
	must(t, l.ask(l.client()))
	left, _ := filepath.Glob(l.path(".*"))
	slices.Sort(left)
	if want := []string{l.path(".df11-token-2"), l.path(".token-3")}; !slices.Equal(left, want) {
		t.Error(left)
	}
}

// TestLoginThroughALink checks stored tokens that are a link: the link stays, and one that leads
// nowhere makes nothing be renewed.
func TestLoginThroughALink(t *testing.T) {
	l := logIn(t, time.Hour)
	elsewhere := t.TempDir()
	must(t, os.Rename(l.path("stored_tokens"), filepath.Join(elsewhere, "x")))
	must(t, os.Symlink(filepath.Join(elsewhere, "gone", "x"), l.path("stored_tokens")))
	must(t, l.ask(l.client()))
	if n := l.renewals(); n != 0 {
		t.Errorf("%d renewals", n)
	}
	must(t, os.Mkdir(filepath.Join(elsewhere, "gone"), 0o700))
	must(t, os.Rename(filepath.Join(elsewhere, "x"), filepath.Join(elsewhere, "gone", "x")))
	must(t, l.ask(l.client()))
	if st, err := os.Lstat(l.path("stored_tokens")); err != nil || st.Mode()&os.ModeSymlink == 0 || l.renewals() != 1 {
		t.Errorf("through a link: %v, %v, %d renewals", st.Mode(), err, l.renewals())
	}
}
