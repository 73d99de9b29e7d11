package hub

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// publicEndpoint is the hub that everyone means when nothing is set.
const publicEndpoint = "https://huggingface.co"

var errBadURL = errors.New("unreadable URL")

// parseEndpoint checks an endpoint and removes trailing slashes.
func parseEndpoint(s string) (*url.URL, error) {
	s = strings.TrimRight(s, "/")
	if s == "" {
		s = publicEndpoint
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("endpoint %q is not an http or https address", redact(s))
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("endpoint %q must not hold a user, query or fragment", redact(s))
	}
	return u, nil
}

// redact removes user, query and fragment from a URL; what is left may be
// logged. It never fails: an unreadable URL is replaced as a whole.
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

// parseVerbatim parses a URL so that it is sent byte for byte: where Go would
// write the path differently, the original is kept as the opaque part.
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

// rewrite moves a URL of the public hub to the endpoint in use, as the Python
// client does for mirrors and self-hosted hubs.
func rewrite(endpoint *url.URL, raw string) string {
	own := endpoint.String()
	rest, ok := strings.CutPrefix(raw, publicEndpoint)
	if !ok || own == publicEndpoint || (rest != "" && rest[0] != '/' && rest[0] != '?') {
		return raw
	}
	return own + rest
}

// escapePath escapes every segment and keeps the slashes.
func escapePath(p string) string {
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}

// apiURL gives {endpoint}/api/models/{repo}{rest}; rest is already escaped.
func (c *Client) apiURL(repo, rest string) string {
	return c.t.endpoint.String() + "/api/models/" + escapePath(repo) + rest
}

// revPath gives /{verb}/{rev}, with the slashes of rev escaped too.
func revPath(verb, rev string) string { return "/" + verb + "/" + url.PathEscape(rev) }

func (c *Client) resolveURL(repo, rev, path string) string {
	return c.t.endpoint.String() + "/" + escapePath(repo) + "/resolve/" + url.PathEscape(rev) + "/" + escapePath(path)
}
