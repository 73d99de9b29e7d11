package hubtest

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// namedFault is a fault that tests, hubd and CI know by name.
type namedFault struct {
	about  string
	host   Host
	method string
	path   string
	action Action
}

// Paths of the named faults.
const (
	anyObject   = "/repos/*"
	anyResolve  = "*/resolve/*"
	anyBatch    = "*.git/info/lfs/objects/batch"
	anyVerify   = "*.git/info/lfs/objects/verify"
	anyComplete = "/api/complete_multipart"
	anyCommit   = "/api/models/*/commit/*"
	anyTree     = "/api/models/*/tree/*"
	anyModel    = "/api/models/*"
)

// FaultNames lists the named faults.
func FaultNames() []string { return slices.Sorted(maps.Keys(faultTable)) }

// DescribeFault says in a few words what a named fault does.
func DescribeFault(name string) string { return faultTable[name].about }

var faultTable = func() map[string]namedFault {
	all := map[string]namedFault{}
	for _, faults := range []map[string]namedFault{trafficFaults(), downloadFaults(), resolveFaults(), uploadFaults(), commitFaults()} {
		maps.Copy(all, faults)
	}
	return all
}()

// trafficFaults hit any route of the hub.
func trafficFaults() map[string]namedFault {
	limited := func(h Header) Action {
		return Status(http.StatusTooManyRequests, h, `{"error":"We had to rate limit you"}`)
	}
	hub := func(about string, a Action) namedFault { return namedFault{about, HostHub, "", "", a} }
	httpDate := func(x *Exchange) {
		when := x.Server.cfg.clock().Add(time.Second).UTC().Format(http.TimeFormat)
		limited(Header{"Retry-After": when, "RateLimit": ""})(x)
	}
	return map[string]namedFault{
		"429-ratelimit":   hub("429 with RateLimit r=0;t=2", limited(Header{"RateLimit": `"api";r=0;t=2`})),
		"429-retry-after": hub("429 with Retry-After: 1", limited(Header{"Retry-After": "1", "RateLimit": ""})),
		"429-http-date":   hub("429 with Retry-After as a date one second ahead", httpDate),
		"429-bare":        hub("429 without any header", limited(Header{"RateLimit": ""})),
		"500":             hub("500 with a JSON error", Error(500, "", "Internal Error - We're working hard to fix this as soon as possible!")),
		"502":             hub("502 with an HTML page", Status(502, Header{"Content-Type": "text/html"}, "<html><body>Bad Gateway</body></html>")),
		"503":             hub("503 without a body", Status(503, nil, "")),
		"504":             hub("504 with an HTML page", Status(504, Header{"Content-Type": "text/html"}, "<html><body>Gateway Timeout</body></html>")),
		"hub-reset":       hub("connection reset before the answer", Reset()),
		"hub-stall":       hub("no answer at all", stall(-1)),
		"warning":         hub("the right answer with X-HF-Warning", setHeader(Header{"X-HF-Warning": "rate; you are close to your limit"})),
		"bad-token":       hub("401: the token is not valid", Error(401, "", "Invalid credentials in Authorization header")),
	}
}

// downloadFaults hit the GET of a large file's bytes.
func downloadFaults() map[string]namedFault {
	cdn := func(about string, a Action) namedFault { return namedFault{about, HostCDN, "GET", anyObject, a} }
	return map[string]namedFault{
		"cdn-500":      cdn("500 from the storage host", StorageError(500, "InternalError", "We encountered an internal error.")),
		"cdn-503":      cdn("503 SlowDown from the storage host", StorageError(503, "SlowDown", "Please reduce your request rate.")),
		"reset":        cdn("connection reset before the header", Reset()),
		"cut":          cdn("connection reset after 1000 bytes of the body", cutAfter(1000, true)),
		"short":        cdn("connection closed after 1000 bytes, short of Content-Length", cutAfter(1000, false)),
		"chunked":      cdn("200, chunked, properly ended after 1000 bytes", truncate(1000)),
		"corrupt":      cdn("right size, one wrong bit", corrupt(500)),
		"ignore-range": cdn("200 with the whole file to a ranged GET", ignoreRange()),
		"wrong-range":  cdn("206 with a Content-Range one byte later than asked", shift(1)),
		"gzip":         cdn("200 with the whole file compressed", compress()),
		"400-range":    cdn("400, as for an unranged GET of a huge file", StorageError(400, "InvalidRequest", "file too large")),
		"expired":      cdn("403: the signed URL has expired", func(x *Exchange) { errExpired.write(x) }),
		"slow":         cdn("one byte per second", Slow(time.Second)),
		"stall":        cdn("1000 bytes, then silence", stall(1000)),
		"stall-header": cdn("no header, silence", stall(-1)),
		"416":          cdn("416 with a total of 1", Status(416, Header{"Content-Range": "bytes */1"}, "")),
	}
}

// resolveFaults hit /resolve/, with whatever method.
func resolveFaults() map[string]namedFault {
	res := func(about string, a Action) namedFault { return namedFault{about, HostHub, "", anyResolve, a} }
	zeros := strings.Repeat("0", 40)
	sameHost := func(s *Server) string { return strings.Replace(s.CDNURL, "localhost", "127.0.0.1", 1) }
	https := func(s *Server) string { return strings.Replace(s.CDNURL, "http:", "https:", 1) }
	return map[string]namedFault{
		"etag-changed":    res("X-Linked-Etag and ETag of another file", setHeader(Header{"X-Linked-Etag": `"` + strings.Repeat("f", 64) + `"`, "ETag": `"` + zeros + `"`})),
		"commit-changed":  res("X-Repo-Commit of another commit", setHeader(Header{"X-Repo-Commit": zeros})),
		"no-commit":       res("no X-Repo-Commit, as from a proxy", setHeader(Header{"X-Repo-Commit": ""})),
		"size-changed":    res("X-Linked-Size is 1", setHeader(Header{"X-Linked-Size": "1"})),
		"redirect-loop":   res("relative redirect to itself", redirectTo(func(*Server) string { return "" })),
		"redirect-host":   res("redirect to the other host, unsigned", redirectTo(func(s *Server) string { return s.CDNURL })),
		"redirect-port":   res("redirect to another port of the same host", redirectTo(sameHost)),
		"redirect-scheme": res("redirect to https", redirectTo(https)),
		"gated-401":       res("gated repo, caller unknown", Error(401, codeGatedRepo, "Access to model is restricted. You must have access to it and be authenticated to access it. Please log in.")),
		"gated-403":       res("gated repo, caller not on the list", Error(403, codeGatedRepo, "Access to model is restricted and you are not in the authorized list.")),
		"entry-404":       res("file not found", Error(404, codeEntryNotFound, "Entry not found")),
		"disabled":        {"repo disabled", HostHub, "", anyModel, Error(403, "", "Access to this resource is disabled.")},
		"repo-401":        {"repo not found, caller unknown", HostHub, "", anyModel, Error(401, codeRepoNotFound, "Invalid username or password.")},
		"repo-404":        {"repo not found", HostHub, "", anyModel, Error(404, codeRepoNotFound, "Repository not found")},
		"revision-404":    {"revision not found", HostHub, "", anyModel, Error(404, codeRevisionNotFound, "Invalid rev id")},
		"link-origin":     {"next page on another origin", HostHub, "GET", anyTree, foreignLink},
		"tree-duplicate":  {"the first entry twice", HostHub, "GET", anyTree, EditJSON(duplicateFirst)},
		"tree-empty":      {"an empty page", HostHub, "GET", anyTree, EditJSON(func(any) any { return []any{} })},
		"tree-bad-path":   {"an entry that climbs out of the folder", HostHub, "GET", anyTree, EditJSON(climbingPath)},
	}
}
