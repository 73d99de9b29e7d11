package hub

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	gohf "github.com/gomlx/go-huggingface/hub"

	"github.com/df11-convert/df11-convert/internal/names"
)

// publicEndpoint is the hub in use if no other is set.
const publicEndpoint = "https://huggingface.co"

// An endpoint is the address of the hub in use.
type endpoint struct{ *url.URL }

// An EndpointError says that [Connection.Endpoint] isn't an address on the web.
type EndpointError struct{ Endpoint string }

func (e *EndpointError) Error() string {
	if strings.ContainsAny(e.Endpoint, "@?#") { // it may hold a password, or a signature
		return "the Hub's address isn't an http:// or https:// address"
	}
	return fmt.Sprintf("the Hub's address %q isn't an http:// or https:// address", e.Endpoint)
}

// parseEndpoint checks an endpoint and removes trailing slashes.
func parseEndpoint(s string) (endpoint, error) {
	u, err := url.Parse(cmp.Or(strings.TrimRight(s, "/"), publicEndpoint))
	if err != nil || u.Host == "" || !isHTTP(u) || !isPort(u.Port()) { // err may show a password
		return endpoint{}, &EndpointError{s}
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return endpoint{}, fmt.Errorf("endpoint %q %w", redactURL(u), ErrEndpointParts)
	}
	return endpoint{u}, nil
}

// isPort reports whether an address's port is empty or a number that a port can have.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

func isHTTP(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// public is the public hub's origin. Mirrors that HF_ENDPOINT names redirect to it, such as
// hf-mirror: https://github.com/huggingface/huggingface_hub/issues/4637. So, as in the Python
// client, a token may go to the endpoint in use and to the public hub, and nowhere else.
var public = &url.URL{Scheme: "https", Host: "huggingface.co"}

// owns reports whether a URL is on the hub: on the endpoint's own origin, or the public hub's.
func (e endpoint) owns(u *url.URL) bool { return sameOrigin(u, e.URL) || sameOrigin(u, public) }

// api returns {endpoint}/api/models/{repo}{rest}. rest is already escaped.
func (e endpoint) api(repo, rest string) string {
	return e.String() + "/api/models/" + escapePath(repo) + rest
}

// page returns {endpoint}/{repo}{rest}. rest is already escaped.
func (e endpoint) page(repo, rest string) string {
	return e.String() + "/" + escapePath(repo) + rest
}

// rewrite moves a URL of the public hub to the endpoint in use, as the Python client does for
// mirrors, such as olah, and for self-hosted hubs (fix_hf_endpoint_in_url).
func (e endpoint) rewrite(raw string) string {
	own := e.String()
	rest, ok := strings.CutPrefix(raw, publicEndpoint)
	if !ok || own == publicEndpoint || (rest != "" && rest[0] != '/' && rest[0] != '?') {
		return raw
	}
	return own + rest
}

// revPath returns /{verb}/{rev}, with the slashes of rev escaped too.
func revPath(verb, rev string) string { return "/" + verb + "/" + url.PathEscape(rev) }

// escapePath escapes every segment and keeps the slashes.
func escapePath(p string) string { return (&url.URL{Path: p}).EscapedPath() }

// redactURL removes user, query, and fragment, so that the rest may be logged.
func redactURL(u *url.URL) string {
	clean := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return clean.String()
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// sameOrigin compares scheme, host, and port, with default ports filled in.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) &&
		cmp.Or(a.Port(), defaultPorts[a.Scheme]) == cmp.Or(b.Port(), defaultPorts[b.Scheme])
}

// parseLink parses a URL from an answer. The request repeats it byte for byte.
func parseLink(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, errBadURL // url's own error would show the query
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// maxHops limits redirects, as net/http does. The longest known chain has three: from hf-mirror to
// the Hub, to a repo's new name, and to the storage.
const maxHops = 10

// isRedirect reports whether a status is a redirect.
func isRedirect(status int) bool {
	return slices.Contains([]int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect}, status)
}

// nextHop returns the next URL, nil if resp is the answer, or an error if the redirect must not be
// followed. The token goes along only if the new origin may have it.
func (e endpoint) nextHop(r *request, u *url.URL, resp *http.Response, hop int) (*url.URL, error) {
	status, location := resp.StatusCode, resp.Header.Get("Location")
	// a browser follows redirects unseen
	if err := e.mayLead(r, u, resp.Request.URL); err != nil {
		return nil, err
	}
	if !isRedirect(status) || location == "" {
		return nil, nil
	}
	// all others let a client turn a POST into a GET (RFC 9110, section 15.4)
	if (r.follow == followSame || r.follow == followStorage) &&
		status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		return nil, fmt.Errorf("%w: a %s was redirected with %d", ErrNotHub, r.method, status)
	}
	next, relative, err := e.target(u, location)
	if err == nil {
		err = e.mayLead(r, u, next)
	}
	if err != nil {
		return nil, err
	}
	// A redirect with a file's metadata has a commit header. Those of hf-mirror to the Hub, and of
	// a hub to a repo's new name, have none.
	renamed := e.owns(next) && resp.Header.Get(gohf.HeaderXRepoCommit) == ""
	if r.follow == followRelative && !relative && !renamed {
		return nil, nil
	}
	if hop+1 >= maxHops {
		return nil, fmt.Errorf("%w: more than %d redirects", ErrNotHub, maxHops)
	}
	return next, nil
}

// mayLead refuses a redirect to another origin, unless r reads a file, or the hub sends one on to a
// storage. So no other origin answers for the hub.
func (e endpoint) mayLead(r *request, from, to *url.URL) error {
	if r.follow == followAll || r.follow == followRelative || sameOrigin(from, to) ||
		e.owns(from) && (e.owns(to) || r.follow == followStorage) {
		return nil
	}
	return fmt.Errorf("%w: it was redirected to %s", ErrNotHub, to.Host)
}

// target reads a Location or a Link that came from u. olah passes on those of the public hub, which
// then move to the mirror: https://github.com/huggingface/huggingface_hub/pull/3646. If that's
// where it came from, the mirror means the public hub, as hf-mirror does. Target refuses other
// schemes than http and https, and the step from https to http.
func (e endpoint) target(u *url.URL, location string) (next *url.URL, relative bool, err error) {
	ref, err := url.Parse(location)
	if err != nil {
		// the text may hold a signature
		return nil, false, fmt.Errorf("%w: unreadable redirect", ErrNotHub)
	}
	next = u.ResolveReference(ref)
	own, err := parseLink(e.rewrite(next.String()))
	if err == nil && sameOrigin(u, e.URL) && own.String() != u.String() {
		next = own
	}
	if !isHTTP(next) {
		return nil, false, fmt.Errorf("%w: redirect to scheme %q", ErrNotHub, next.Scheme)
	}
	next.Fragment, next.RawFragment = "", ""
	return next, ref.Host == "", noDowngrade(u, next)
}

// noDowngrade refuses the step from https to http.
func noDowngrade(from, to *url.URL) error {
	if from.Scheme == "https" && to.Scheme == "http" {
		return fmt.Errorf("%w: %s, over https, leads to plain http at %s", ErrNotHub, from.Host,
			to.Host)
	}
	return nil
}

// checkRepo refuses a repo id that must not go into a URL or a path.
func checkRepo(id string) error {
	if !names.IsRepo(id) {
		return fmt.Errorf("hub: repo id %q is not of the form namespace/name", id)
	}
	return nil
}
