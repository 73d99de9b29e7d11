package hub

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// publicEndpoint is the hub that everyone means when nothing is set.
const publicEndpoint = "https://huggingface.co"

var errBadURL = errors.New("unreadable URL")

// endpoint is the address of the hub in use.
type endpoint struct{ *url.URL }

// parseEndpoint checks an endpoint and removes trailing slashes.
func parseEndpoint(s string) (endpoint, error) {
	s = cmp.Or(strings.TrimRight(s, "/"), publicEndpoint)
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return endpoint{}, fmt.Errorf("endpoint %q is not an http or https address", redact(s))
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return endpoint{}, fmt.Errorf("endpoint %q must not hold a user, query or fragment", redact(s))
	}
	return endpoint{u}, nil
}

// owns says whether a URL has the hub's own origin.
func (e endpoint) owns(u *url.URL) bool { return sameOrigin(u, e.URL) }

// api gives {endpoint}/api/models/{repo}{rest}; rest is already escaped.
func (e endpoint) api(repo, rest string) string {
	return e.String() + "/api/models/" + escapePath(repo) + rest
}

// page gives {endpoint}/{repo}{rest}; rest is already escaped.
func (e endpoint) page(repo, rest string) string {
	return e.String() + "/" + escapePath(repo) + rest
}

// rewrite moves a URL of the public hub to the endpoint in use, as the Python client does for mirrors and self-hosted
// hubs.
func (e endpoint) rewrite(raw string) string {
	own := e.String()
	rest, ok := strings.CutPrefix(raw, publicEndpoint)
	if !ok || own == publicEndpoint || (rest != "" && rest[0] != '/' && rest[0] != '?') {
		return raw
	}
	return own + rest
}

// revPath gives /{verb}/{rev}, with the slashes of rev escaped too.
func revPath(verb, rev string) string { return "/" + verb + "/" + url.PathEscape(rev) }

// escapePath escapes every segment and keeps the slashes.
func escapePath(p string) string {
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}

// redact removes user, query and fragment from a URL; the rest may be logged. It never fails: an unreadable URL is
// replaced as a whole.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "[unreadable URL]"
	}
	return redactURL(u)
}

func redactURL(u *url.URL) string {
	clean := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return clean.String()
}

// sameOrigin compares scheme, host and port; default ports are filled in.
func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if strings.EqualFold(u.Scheme, "https") {
		return "443"
	}
	return "80"
}

// parseVerbatim parses a URL so that it is sent byte for byte: where Go would write the path differently, the original
// is kept as the opaque part.
func parseVerbatim(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, errBadURL // url's own error would show the query
	}
	u.Fragment, u.RawFragment = "", ""
	sent := raw[strings.Index(raw, "//")+2:]
	sent, _, _ = strings.Cut(sent, "#")
	slash := strings.IndexAny(sent, "/?")
	if slash < 0 || sent[slash] != '/' {
		return u, nil
	}
	if path, _, _ := strings.Cut(sent[slash:], "?"); path != u.EscapedPath() && !strings.HasPrefix(path, "//") {
		u.Opaque = path
	}
	return u, nil
}

// sentURL writes a URL as it is sent: the opaque form keeps its exact path.
func sentURL(u *url.URL) string {
	if u.Opaque == "" {
		return u.String()
	}
	s := u.Scheme + "://" + u.Host + u.Opaque
	if u.RawQuery != "" {
		s += "?" + u.RawQuery
	}
	return s
}
