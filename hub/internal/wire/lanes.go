package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
)

// laneKey names the requests that one limit covers. Caller and bucket are empty for a storage host, which knows neither.
type laneKey struct {
	host   string
	caller string // fingerprint of the token
	bucket string // "api", "resolvers", or what has a quota of its own: "commit", "create"
}

// lanes sorts the requests of one client.
type lanes struct {
	endpoint Endpoint
	caller   string // fingerprint of the token
}

// of names the lane of a URL. A hub counts by token and bucket.
func (l lanes) of(u *url.URL) laneKey {
	if !l.endpoint.Owns(u) {
		return laneKey{host: u.Host}
	}
	bucket, route := "api", l.route(u)
	switch {
	case route[0] != "api" && slices.Contains(route[1:min(3, len(route))], "resolve"): // below name or ns/name
		bucket = "resolvers"
	case route[0] == "api" && len(route) > 1 && route[1] == "resolve-cache":
		bucket = "resolvers"
	}
	return laneKey{u.Host, l.caller, bucket}
}

// quota names the lane that a refusal without a bucket closes. Commits and new repos have quotas of their own, by the
// hour, that hold back nothing else.
func (l lanes) quota(u *url.URL) laneKey {
	key := l.of(u)
	switch route := l.route(u); {
	case key.bucket != "api":
	case slices.Equal(route, []string{"api", "repos", "create"}):
		key.bucket = "create"
	case len(route) > 5 && route[0] == "api" && route[1] == "models" && route[4] == "commit": // below ns/name
		key.bucket = "commit"
	}
	return key
}

// route gives the segments of a path on the hub, at least one. Names of repos and files may look like any route, so that
// only places in it tell.
func (l lanes) route(u *url.URL) []string {
	return strings.Split(strings.TrimPrefix(strings.TrimPrefix(u.Path, l.endpoint.Path), "/"), "/")
}

// fingerprint tells tokens apart without being one.
func fingerprint(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:8])
}
