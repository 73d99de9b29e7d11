package hub

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	gohf "github.com/gomlx/go-huggingface/hub"
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

// nextHop gives the URL to go on with, nil when resp is the answer, or an error when the redirect must not be followed.
// Whether the token goes along is decided anew for each hop, by its origin.
func (t *transport) nextHop(r *request, u *url.URL, resp *http.Response, hop int) (*url.URL, error) {
	status, location := resp.StatusCode, resp.Header.Get("Location")
	if !isRedirect(status) || location == "" {
		return nil, nil
	}
	if r.follow == followSame && status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		return nil, t.failure(r, u, fmt.Errorf("%s request was answered with redirect %d", r.method, status))
	}
	next, relative, err := t.endpoint.target(u, location)
	if err != nil {
		return nil, t.failure(r, u, err)
	}
	// A redirect to the repo's new name on the hub names no commit; the one that carries a file's metadata does.
	renamed := t.endpoint.owns(next) && resp.Header.Get(gohf.HeaderXRepoCommit) == ""
	if r.follow == followRelative && !relative && !renamed {
		return nil, nil
	}
	if hop+1 >= maxHops {
		return nil, t.failure(r, u, fmt.Errorf("%w: more than %d redirects", ErrNotHub, maxHops))
	}
	return next, nil
}

// target reads a Location that came from u: absolute ones byte for byte. Schemes other than http and https, and the step
// from https down to http, are refused.
func (e endpoint) target(u *url.URL, location string) (next *url.URL, relative bool, err error) {
	ref, err := url.Parse(location)
	if err != nil {
		return nil, false, fmt.Errorf("%w: unreadable redirect", ErrNotHub) // the text may hold a signature
	}
	if relative = ref.Host == ""; relative {
		base := *u
		base.Opaque = ""
		next = base.ResolveReference(ref)
		next.Fragment, next.RawFragment = "", ""
	} else {
		if strings.HasPrefix(location, "//") {
			location = u.Scheme + ":" + location
		}
		if next, err = parseVerbatim(e.rewrite(location)); err != nil {
			return nil, false, fmt.Errorf("%w: unreadable redirect", ErrNotHub)
		}
	}
	if next.Scheme != "http" && next.Scheme != "https" {
		return nil, false, fmt.Errorf("%w: redirect to scheme %q", ErrNotHub, next.Scheme)
	}
	if u.Scheme == "https" && next.Scheme == "http" {
		return nil, false, fmt.Errorf("%w: redirect from https to plain http at %s", ErrNotHub, next.Host)
	}
	return next, relative, nil
}
