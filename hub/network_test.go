//go:build !js

package hub

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// TestBadProxyIsNoProxy checks that a request isn't sent past a proxy whose address can't be read,
// and that the error doesn't show the password. A host that has no proxy is asked anyway.
func TestBadProxyIsNoProxy(t *testing.T) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		for _, value := range []string{"http://u:secret%PW@proxy:1", "http://proxy:1:2", "http://u:secret#w@proxy:1", "ftp://proxy", "http://", "http://proxy/path", "http://u:secret/@proxy:1"} {
			for _, other := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
				t.Setenv(other, "")
			}
			t.Setenv("HTTPS_PROXY", value) // as the program does for ALL_PROXY
			if name == "https_proxy" {
				t.Setenv("HTTPS_PROXY", "")
			}
			t.Setenv(name, value)
			for u, want := range map[string]bool{publicEndpoint: true, "https://127.0.0.1:1": false, "https://localhost": false, "https://[::1]": false} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				_, err = proxyFor(r)
				e := &Error{Err: err}
				switch {
				case !want && err == nil:
				case !want || err == nil || !hint.BadProxy.Is(hintOf(e)) || !strings.HasPrefix(err.Error(), name+" ") || strings.Contains(err.Error(), "secret") || e.Temporary():
					t.Errorf("%s=%s: %s: %v, %s", name, value, u, err, hintOf(e))
				}
			}
		}
	}
	t.Setenv("no_proxy", "")
	for list, want := range map[string]string{
		"":                          "",
		"*":                         "a.corp b.a.corp corp 10.1.2.3:8443 [fd00::1] x.org",
		"corp":                      "a.corp b.a.corp corp",
		" .CORP , x.org:444":        "a.corp b.a.corp",
		"*.corp,x.org:443":          "a.corp b.a.corp x.org",
		"orp,.org.,*x.org,:443":     "",
		"10.1.2.3":                  "10.1.2.3:8443",
		"10.1.2.3:443,fd00::1":      "[fd00::1]",
		"10.0.0.0/8,fd00::/8,*:443": "10.1.2.3:8443 [fd00::1]",
	} {
		t.Setenv("NO_PROXY", list)
		var direct []string
		for _, host := range strings.Fields("a.corp b.a.corp corp 10.1.2.3:8443 [fd00::1] x.org") {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := proxyFor(r); err == nil {
				direct = append(direct, host)
			}
		}
		if got := strings.Join(direct, " "); got != want {
			t.Errorf("NO_PROXY=%q: direct are %s", list, got)
		}
	}
	for _, good := range []string{"proxy", "proxy:3128", "http://u:p%25w@proxy:1/", "socks5://[::1]:1080", "https://proxy"} {
		if !isProxy(good) {
			t.Errorf("%s is a proxy", good)
		}
	}
}

// TestTheProxyRefuses checks what is said of a proxy that doesn't connect, and that the request
// counts as one that wasn't sent.
func TestTheProxyRefuses(t *testing.T) {
	for status, want := range map[int]hint.Hint{
		http.StatusProxyAuthRequired: hint.ProxyLogin.With("variable", "HTTPS_PROXY"),
		http.StatusForbidden:         hint.NetworkProxy.With("variable", "HTTPS_PROXY", "proxy", "http://proxy:3128"),
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodConnect {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			w.WriteHeader(status)
		}))
		defer proxy.Close()
		t.Setenv("HTTPS_PROXY", "http://proxy:3128")
		at, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		rt := newRoundTripper(NewGovernor())
		rt.Proxy = http.ProxyURL(at)
		c, clock := testTransport(t, rt)
		_, err = whoAmI(t.Context(), c)
		if got := hintOf(err); got != want.String() || !strings.Contains(err.Error(), http.StatusText(status)) {
			t.Errorf("%v\nhint: %s", err, got)
		}
		if lasts := status == http.StatusProxyAuthRequired; lasts != (clock.Waited() == 0) || !lasts && !neverBegun(err) {
			t.Errorf("%v: waited %v", err, clock.Waited())
		}
	}
}
