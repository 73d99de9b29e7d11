package hub

import (
	"fmt"
	"net/http"
	"net/url"
)

// followRule says which redirects a request follows.
type followRule int

const (
	followAll      followRule = iota // GET of file bytes, API reads
	followRelative                   // metadata HEAD: an absolute Location is the answer
	followSame                       // bodies: 307 and 308 only
)

// maxHops bounds redirects; the longest known chain has three.
const maxHops = 10

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// nextHop gives the URL to go on with, nil when resp is the answer, or an
// error when the redirect must not be followed. Whether the token goes along
// is decided anew for each hop, by its origin.
func (t *transport) nextHop(r *request, u *url.URL, resp *http.Response, hop int) (*url.URL, error) {
	location := resp.Header.Get("Location")
	if !isRedirect(resp.StatusCode) || location == "" {
		return nil, nil
	}
	if r.follow == followSame && resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return nil, t.failure(r, u, fmt.Errorf("%s request was answered with redirect %d", r.method, resp.StatusCode))
	}
	next, relative, err := t.target(u, location)
	if err != nil {
		return nil, t.failure(r, u, err)
	}
	if r.follow == followRelative && !relative && !t.renamed(next, resp) {
		return nil, nil
	}
	if hop+1 >= maxHops {
		return nil, t.failure(r, u, fmt.Errorf("%w: more than %d redirects", ErrNotHub, maxHops))
	}
	return next, nil
}

// renamed tells a redirect to the repo's new name on the hub itself from the
// redirect that carries a file's metadata.
func (t *transport) renamed(next *url.URL, resp *http.Response) bool {
	return sameOrigin(next, t.endpoint) && resp.Header.Get("X-Repo-Commit") == ""
}

// target reads a Location: absolute ones byte for byte. Schemes other than
// http and https, and the step from https down to http, are refused.
func (t *transport) target(u *url.URL, location string) (next *url.URL, relative bool, err error) {
	ref, err := url.Parse(location)
	if err != nil {
		return nil, false, fmt.Errorf("%w: unreadable redirect", ErrNotHub) // the text may hold a signature
	}
	relative = ref.Host == ""
	if relative {
		base := *u
		base.Opaque = ""
		next = base.ResolveReference(ref)
		next.Fragment, next.RawFragment = "", ""
	} else if next, err = parseVerbatim(rewrite(t.endpoint, absolute(u, location))); err != nil {
		return nil, false, fmt.Errorf("%w: unreadable redirect", ErrNotHub)
	}
	if next.Scheme != "http" && next.Scheme != "https" {
		return nil, false, fmt.Errorf("%w: redirect to scheme %q", ErrNotHub, next.Scheme)
	}
	if u.Scheme == "https" && next.Scheme == "http" {
		return nil, false, fmt.Errorf("%w: redirect from https to plain http at %s", ErrNotHub, next.Host)
	}
	return next, relative, nil
}

// absolute completes a Location of the form //host/path.
func absolute(u *url.URL, location string) string {
	if len(location) > 1 && location[:2] == "//" {
		return u.Scheme + ":" + location
	}
	return location
}
