package hubtest

import (
	"strings"
	"testing"
)

// TestAccess checks who may see, read, and change what, and the words of each refusal. The official
// clients decide by code and text.
func TestAccess(t *testing.T) {
	s := Start(t,
		WithUser("owner", User{Name: "org"}),
		WithUser("guest", User{Name: "bob"}),
		WithUser("agrees", User{Name: "ann", Agrees: true}),
		WithUser("granted", User{Name: "eve", Granted: []string{"org/gated"}, CanRead: []string{"org/private"}}),
		WithUser("app", User{Name: "org", Made: true}),
		WithUser("reader", User{Name: "org", ReadOnly: true}))
	files := map[string][]byte{"a.txt": []byte("hello\n")}
	s.AddRepo("org/open", files)
	s.AddRepo("org/private", files, Private())
	s.AddRepo("org/gated", files, Gated("manual"))
	s.AddRepo("org/auto", files, Gated("auto"))
	must(t, "POST", s.URL+"/api/repos/create", "app", `{"type":"model","name":"made","organization":"org"}`)
	const info, file, write = "/api/models/%", "/%/resolve/main/a.txt", "/api/models/%/auth-check/write"
	for _, tc := range []struct {
		route, repo, token string
		status             int
		code, text         string // the end of X-Error-Message
	}{
		{info, "org/open", "", 200, "", ""},
		{info, "org/none", "", 401, codeRepoNotFound, "Invalid username or password."},
		{info, "org/none", "guest", 404, codeRepoNotFound, "Repository not found"},
		{info, "org/open", "expired", 401, "", "Invalid credentials in Authorization header"},
		{info, "org/private", "", 401, codeRepoNotFound, ""},
		{info, "org/private", "guest", 404, codeRepoNotFound, ""},
		{info, "org/private", "granted", 200, "", ""},
		{info, "org/private", "owner", 200, "", ""},
		{info, "org/gated", "", 200, "", ""},
		{file, "org/gated", "", 401, codeGatedRepo, ""},
		{file, "org/gated", "guest", 403, codeGatedRepo, "/org/gated to ask for access."},
		{file, "org/gated", "granted", 200, "", ""},
		{file, "org/gated", "agrees", 403, codeGatedRepo, ""},
		{file, "org/auto", "guest", 403, codeGatedRepo, ""},
		{file, "org/auto", "agrees", 200, "", ""},
		{write, "org/open", "", 401, "", ""},
		{write, "org/open", "guest", 403, "", ""},
		{write, "org/open", "reader", 403, "", "use a write token to upload to a repository."},
		{write, "org/open", "owner", 200, "", ""},
		{write, "org/open", "app", 403, "", ""}, // it didn't create this one
		{write, "org/made", "app", 200, "", ""},
		{"/%/resolve/nope/a.txt", "org/open", "", 404, codeRevisionNotFound, "Invalid rev id: nope"},
		{"/%/resolve/main/nope.txt", "org/open", "", 404, codeEntryNotFound, "Entry not found"},
		{"/api/models/%/surprise", "org/open", "", 404, "", "Sorry, we can't find the page you are looking for."},
	} {
		a := ask(t, "GET", s.URL+strings.Replace(tc.route, "%", tc.repo, 1), tc.token, "")
		text := a.header.Get("X-Error-Message")
		if a.status != tc.status || a.code() != tc.code || !strings.HasSuffix(text, tc.text) || (text != "") != (tc.status >= 400) {
			t.Errorf("%+v: got %d %q %q", tc, a.status, a.code(), text)
		}
		if a.header.Get("X-Request-Id") == "" || a.header.Get("RateLimit") == "" {
			t.Errorf("%+v: X-Request-Id or RateLimit is missing", tc)
		}
	}
	if a := ask(t, "HEAD", s.URL+"/org/open/resolve/main/nope.txt", "", ""); a.header.Get("X-Repo-Commit") != s.Head("org/open", "main") {
		t.Errorf("missing entry: %v", a.header)
	}
}
