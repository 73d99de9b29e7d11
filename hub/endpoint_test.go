package hub

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

// TestLinksAreSentByteForByte checks links, also those of redirects, because a signature covers
// their exact bytes.
func TestLinksAreSentByteForByte(t *testing.T) {
	hub, _ := url.Parse("https://hub.test/a/b")
	for _, raw := range []string{
		"https://cdn.test/a%2Fb/c%20d?X-Amz-Signature=a%2Bb+c%3d&Policy=e~_",
		"https://cdn.test/a%7Eb?sig=%E4",
		"https://cdn.test/x?",
		"https://cdn.test//a//b%2f%2Fc/?x=1&y",
	} {
		u, err := parseLink(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := "https://cdn.test" + u.RequestURI(); got != raw || u.String() != raw {
			t.Errorf("sent %q, kept %q, want %q", got, u, raw)
		}
		if next, relative, err := (endpoint{hub}).target(hub, raw); err != nil || relative || next.String() != raw {
			t.Errorf("redirected to %q, want %q; %v", next, raw, err)
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
		if got := (endpoint{own}).rewrite(in); got != want {
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

// TestPorts checks that an address with a port that can't be is refused before a request.
func TestPorts(t *testing.T) {
	for port, ok := range map[string]bool{"": true, ":1": true, ":65535": true, ":0": false, ":65536": false, ":99999999999999999999": false} {
		if _, err := parseEndpoint("https://hub.test" + port); (err == nil) != ok {
			t.Errorf("port %s: %v", port, err)
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
		_, err := c.call(t.Context(), getRequest("x", "", "https://hub.test/api/x"), nil)
		if !errors.Is(err, ErrNotHub) || w.Count() > maxHops || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %d requests, %v", name, w.Count(), err)
		}
	}
}
