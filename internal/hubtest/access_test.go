package hubtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// people is a server with an owner, a guest, a guest who was let in and a
// reading token.
func people(t *testing.T) *Server {
	s := Start(t,
		WithUser("owner", User{Name: "org"}),
		WithUser("member", User{Name: "ann", Orgs: []string{"org"}}),
		WithUser("guest", User{Name: "bob"}),
		WithUser("granted", User{Name: "eve", Granted: []string{"org/gated"}, CanRead: []string{"org/private"}}),
		WithUser("reader", User{Name: "org", ReadOnly: true}))
	files := map[string][]byte{"a.txt": []byte("hello\n")}
	s.AddRepo("org/open", files)
	s.AddRepo("org/private", files, Private())
	s.AddRepo("org/gated", files, Gated("manual"))
	s.AddRepo("org/off", files, Disabled())
	return s
}

func TestAccess(t *testing.T) {
	s := people(t)
	const info, file, check, write = "/api/models/%", "/%/resolve/main/a.txt", "/api/models/%/auth-check", "/api/models/%/auth-check/write"
	for _, tc := range []struct {
		route, repo, token string
		status             int
		code               string
	}{
		{info, "org/open", "", 200, ""},
		{info, "org/none", "", 401, codeRepoNotFound},
		{info, "org/none", "guest", 404, codeRepoNotFound},
		{info, "org/open", "expired", 401, ""},
		{info, "org/private", "", 401, codeRepoNotFound},
		{info, "org/private", "guest", 404, codeRepoNotFound},
		{info, "org/private", "granted", 200, ""},
		{info, "org/private", "owner", 200, ""},
		{info, "org/gated", "", 200, ""},
		{file, "org/gated", "", 401, codeGatedRepo},
		{file, "org/gated", "guest", 403, codeGatedRepo},
		{file, "org/gated", "granted", 200, ""},
		{file, "org/gated", "member", 200, ""},
		{check, "org/gated", "guest", 403, codeGatedRepo},
		{check, "org/open", "guest", 200, ""},
		{info, "org/off", "owner", 403, ""},
		{write, "org/open", "", 401, ""},
		{write, "org/open", "guest", 403, ""},
		{write, "org/open", "reader", 403, ""},
		{write, "org/open", "member", 200, ""},
	} {
		url := s.URL + strings.Replace(tc.route, "%", tc.repo, 1)
		resp, body := do(t, "GET", url, tc.token, "")
		if resp.StatusCode != tc.status || resp.Header.Get("X-Error-Code") != tc.code {
			t.Errorf("%s as %q: got %d %q, want %d %q: %s", url, tc.token, resp.StatusCode, resp.Header.Get("X-Error-Code"), tc.status, tc.code, body)
		}
		if tc.status >= 400 && resp.Header.Get("X-Error-Message") == "" {
			t.Errorf("%s: no X-Error-Message", url)
		}
		if resp.Header.Get("X-Request-Id") == "" || resp.Header.Get("RateLimit") == "" {
			t.Errorf("%s: X-Request-Id or RateLimit is missing", url)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	s := people(t)
	for url, text := range map[string]string{
		"/api/models/org/off":              "Access to this resource is disabled.",
		"/org/gated/resolve/main/a.txt":    "/org/gated to ask for access.",
		"/org/open/resolve/nope/a.txt":     "Invalid rev id: nope",
		"/org/open/resolve/main/nope.txt":  "Entry not found",
		"/api/models/org/open/tree/main/x": `Entry not found: "x"`,
		"/api/models/org/open/surprise":    "Sorry, we can't find the page you are looking for.",
	} {
		resp, _ := do(t, "GET", s.URL+url, "guest", "")
		if got := resp.Header.Get("X-Error-Message"); !strings.HasSuffix(got, text) {
			t.Errorf("%s: got %q, want %q", url, got, text)
		}
	}
	resp, _ := do(t, "GET", s.URL+"/api/whoami-v2", "wrong", "")
	if resp.StatusCode != 401 || resp.Header.Get("X-Error-Message") != "Invalid credentials in Authorization header" {
		t.Errorf("bad token: %d %q", resp.StatusCode, resp.Header.Get("X-Error-Message"))
	}
	resp, _ = do(t, "HEAD", s.URL+"/org/open/resolve/main/nope.txt", "", "")
	if resp.Header.Get("X-Repo-Commit") != s.Head("org/open", "main") || resp.Header.Get("X-Error-Code") != codeEntryNotFound {
		t.Errorf("missing entry: %v", resp.Header)
	}
}

func TestWhoami(t *testing.T) {
	s := people(t)
	resp, body := do(t, "GET", s.URL+"/api/whoami-v2", "member", "")
	want(t, resp, body, http.StatusOK, "")
	got := decode[struct {
		Name string
		Orgs []struct{ Name string }
		Auth struct{ AccessToken struct{ Role string } }
	}](t, body)
	if got.Name != "ann" || len(got.Orgs) != 1 || got.Orgs[0].Name != "org" || got.Auth.AccessToken.Role != "write" {
		t.Errorf("got %+v", got)
	}
	resp, body = do(t, "GET", s.URL+"/api/whoami-v2", "", "")
	want(t, resp, body, http.StatusUnauthorized, "")
}

func TestQuota(t *testing.T) {
	s := Start(t, WithQuota("api", 2))
	s.AddRepo("org/open", nil)
	url := s.URL + "/api/models/org/open"
	for left := 1; left >= 0; left-- {
		resp, body := do(t, "GET", url, "", "")
		want(t, resp, body, 200, "")
		if got := resp.Header.Get("RateLimit"); !strings.HasPrefix(got, fmt.Sprintf(`"api";r=%d;`, left)) {
			t.Errorf("RateLimit: %s", got)
		}
	}
	resp, body := do(t, "GET", url, "", "")
	want(t, resp, body, 429, "")
	if !strings.Contains(resp.Header.Get("RateLimit-Policy"), `"api";q=2;w=300`) {
		t.Errorf("policy: %s", resp.Header.Get("RateLimit-Policy"))
	}
	resp, body = do(t, "GET", s.URL+"/org/open/resolve/main/.gitattributes", "", "")
	want(t, resp, body, 200, "") // another bucket
}
