package wire

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

// TestLinksAreSentByteForByte checks links, because a signature covers their exact bytes.
func TestLinksAreSentByteForByte(t *testing.T) {
	for _, raw := range []string{
		"https://cdn.test/a%2Fb/c%20d?X-Amz-Signature=a%2Bb+c%3d&Policy=e~_",
		"https://cdn.test/a%7Eb?sig=%E4",
		"https://cdn.test/x?",
	} {
		u, err := parseLink(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := "https://cdn.test" + u.RequestURI(); got != raw || u.String() != raw {
			t.Errorf("sent %q, kept %q, want %q", got, u, raw)
		}
	}
}

func TestRewrite(t *testing.T) {
	own, _ := url.Parse("http://127.0.0.1:8080/hub")
	for in, want := range map[string]string{
		"https://huggingface.co/a/b?x=1": "http://127.0.0.1:8080/hub/a/b?x=1",
		"https://huggingface.co":         "http://127.0.0.1:8080/hub",
		"https://huggingface.company/a":  "https://huggingface.company/a",
		"https://cdn-lfs.hf.co/a":        "https://cdn-lfs.hf.co/a",
	} {
		if got := (Endpoint{own}).Rewrite(in); got != want {
			t.Errorf("%s: got %s", in, got)
		}
	}
}

func TestRedact(t *testing.T) {
	u, _ := url.Parse("https://user:pw@cdn.test/a%2Fb?X-Amz-Signature=secret#frag")
	if got := redactURL(u); got != "https://cdn.test/a%2Fb" {
		t.Errorf("got %s", got)
	}
	for _, bad := range []string{"https://user:secret@hub.test", "https://hub.test/%zz?sig=secret", "ftp://hub.test/?sig=secret"} {
		if _, err := parseEndpoint(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestBadRedirects(t *testing.T) {
	for name, location := range map[string]string{
		"plain http":                   "http://hub.test/api/y",
		"plain http at the public hub": "http://huggingface.co/api/y",
		"unreadable":                   "https://cdn.test/%zz?sig=hidden",
	} {
		w := script(says(302, "", "Location: "+location))
		c, _ := testTransport(t, w)
		_, err := c.Call(t.Context(), Get("x", "", "https://hub.test/api/x"), nil)
		if !errors.Is(err, ErrNotHub) || w.Count() > maxHops || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %d requests, %v", name, w.Count(), err)
		}
	}
}

// TestLaneNeverTakesANameForARoute checks that a limit holds back only its own requests, whatever
// repos, branches, and files are called.
func TestLaneNeverTakesANameForARoute(t *testing.T) {
	for path, want := range map[string]string{
		"/api/models/org/m":                          "api",
		"/api/models/org/resolver-7b":                "api",
		"/api/models/org/resolve":                    "api",
		"/api/models/resolve/m/tree/resolve":         "api",
		"/api/models/org/commit/tree/main":           "api",
		"/api/models/commit/m/branch/commit/x":       "api",
		"/api/models/org/m/commit/main":              "commit",
		"/api/models/org/m/commit/refs/pr/1":         "commit",
		"/api/models/org/commit/commit/main":         "commit",
		"/api/repos/create":                          "create",
		"/api/models/repos/create":                   "api",
		"/api/whoami-v2":                             "api",
		"/api/resolve-cache/models/org/m/abc/x.json": "resolvers",
		"/org/m/resolve/main/api/models/x/commit/x":  "resolvers",
		"/gpt2/resolve/main/config.json":             "resolvers",
		"/org/resolve.git/info/lfs/objects/batch":    "api",
		"/org/m.git/info/lfs/objects/batch":          "api",
		"/resolve/m.git/info/lfs/objects/verify":     "api",
		"/":                                          "api",
	} {
		for _, base := range []string{"https://hub.test", "https://hub.test/prefix", "https://huggingface.co"} {
			own, err := parseEndpoint(base)
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(base + path)
			if err != nil {
				t.Fatal(err)
			}
			if got := (&Transport{Endpoint: own}).laneOf(u); got.kind != want || got.host != u.Host {
				t.Errorf("%s%s: %v, want %s", base, path, got, want)
			}
		}
	}
}
