//go:build !js

package wire

import (
	"net/http"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// TestBadProxyIsNoProxy checks that a request isn't sent past a proxy whose address can't be read, and
// that the error doesn't show the password.
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
			for u, want := range map[string]bool{PublicEndpoint: true, "https://127.0.0.1:1": false, "https://localhost": false, "https://[::1]": false} {
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
	for _, good := range []string{"proxy", "proxy:3128", "http://u:p%25w@proxy:1/", "socks5://[::1]:1080", "https://proxy"} {
		if !isProxy(good) {
			t.Errorf("%s is a proxy", good)
		}
	}
}
