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
	for _, faults := range []map[string]namedFault{trafficFaults(), downloadFaults(),
		resolveFaults(), uploadFaults(), commitFaults()} {
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
	return map[string]namedFault{
		"429-ratelimit": hub("429 with RateLimit r=0;t=2",
			limited(Header{"RateLimit": `"api";r=0;t=2`})),
		"429-retry-after": hub("429 with Retry-After: 1",
			limited(Header{"Retry-After": "1", "RateLimit": ""})),
		"429-bare": hub("429 without any header", limited(Header{"RateLimit": ""})),
		"500": hub("500 with a JSON error",
			Error(500, "", "Internal Error - We're working hard to fix this as soon as possible!")),
		"502": hub("502 with an HTML page", Status(502,
			Header{"Content-Type": "text/html"}, "<html><body>Bad Gateway</body></html>")),
		"503": hub("503 without a body", Status(503, nil, "")),
		"504": hub("504 with an HTML page", Status(504,
			Header{"Content-Type": "text/html"}, "<html><body>Gateway Timeout</body></html>")),
		"hub-reset": hub("connection reset before the answer", Reset()),
		"hub-stall": hub("no answer at all", stall(-1)),
		"bad-token": hub("401: the token is not valid",
			Error(401, "", "Invalid credentials in Authorization header")),
		"mirror": hub(
			"308 to the same address on the public hub, as from a mirror that only redirects",
			redirectHome),
	}
}

// downloadFaults hit the GET of a large file's bytes.
func downloadFaults() map[string]namedFault {
	cdn := func(about string, a Action) namedFault {
		return namedFault{about, HostCDN, "GET", anyObject, a}
	}
	return map[string]namedFault{
		"cdn-500": cdn("500 from the storage host",
			StorageError(500, "InternalError", "We encountered an internal error.")),
		"cdn-503": cdn("503 SlowDown from the storage host",
			StorageError(503, "SlowDown", "Please reduce your request rate.")),
		"reset": cdn("connection reset before the header", Reset()),
		"cut":   cdn("connection reset after 1000 bytes of the body", cutAfter(1000, true)),
		"short": cdn("connection closed after 1000 bytes, short of Content-Length",
			cutAfter(1000, false)),
		"chunked":      cdn("200, chunked, properly ended after 1000 bytes", truncate(1000)),
		"corrupt":      cdn("right size, one wrong bit", corrupt(500)),
		"ignore-range": cdn("200 with the whole file to a ranged GET", ignoreRange),
		"wrong-range":  cdn("206 with a Content-Range one byte later than asked", shift(1)),
		"gzip":         cdn("200 with the whole file compressed", compress),
		"400-range": cdn("400, as for an unranged GET of a huge file",
			StorageError(400, "InvalidRequest", "file too large")),
		"expired":      cdn("403: the signed URL has expired", refuse(errExpired)),
		"slow":         cdn("one byte per second", slow(time.Second)),
		"stall":        cdn("1000 bytes, then silence", stall(1000)),
		"stall-header": cdn("no header, silence", stall(-1)),
		"416": cdn("416 with a total of 1",
			Status(416, Header{"Content-Range": "bytes */1"}, "")),
	}
}

// resolveFaults hit /resolve/, with whatever method.
func resolveFaults() map[string]namedFault {
	res := func(about string, a Action) namedFault {
		return namedFault{about, HostHub, "", anyResolve, a}
	}
	zeros := strings.Repeat("0", 40)
	sameHost := func(s *Server) string {
		return strings.Replace(s.CDNURL, "localhost", "127.0.0.1", 1)
	}
	https := func(s *Server) string { return strings.Replace(s.CDNURL, "http:", "https:", 1) }
	return map[string]namedFault{
		"etag-changed": res("X-Linked-Etag and ETag of another file",
			setHeader(Header{"X-Linked-Etag": `"` + strings.Repeat("f", 64) + `"`,
				"ETag": `"` + zeros + `"`})),
		"commit-changed": res("X-Repo-Commit of another commit",
			setHeader(Header{"X-Repo-Commit": zeros})),
		"no-commit": res("no X-Repo-Commit, as from a proxy",
			setHeader(Header{"X-Repo-Commit": ""})),
		"size-changed": res("X-Linked-Size is 1", setHeader(Header{"X-Linked-Size": "1"})),
		"no-size": res("no size, neither X-Linked-Size nor Content-Length",
			setHeader(Header{"X-Linked-Size": "", "Content-Length": ""})),
		"redirect-loop": res("relative redirect to itself",
			redirectTo(func(*Server) string { return "" })),
		"redirect-host": res("redirect to the other host, unsigned",
			redirectTo(func(s *Server) string { return s.CDNURL })),
		"redirect-port":   res("redirect to another port of the same host", redirectTo(sameHost)),
		"redirect-scheme": res("redirect to https", redirectTo(https)),
		"gated-401": res("gated repo, caller unknown",
			Error(401, codeGatedRepo,
				"Access to model is restricted. You must have access to it and be authenticated to access it. Please log in.")),
		"gated-403": res("gated repo, caller not on the list", Error(403, codeGatedRepo,
			"Access to model is restricted and you are not in the authorized list.")),
		"entry-404": res("file not found", Error(404, codeEntryNotFound, "Entry not found")),
		"repo-401": {"repo not found, caller unknown", HostHub, "", anyModel,
			Error(401, codeRepoNotFound, "Invalid username or password.")},
		"repo-404": {"repo not found", HostHub, "", anyModel,
			Error(404, codeRepoNotFound, "Repository not found")},
		"revision-404": {"revision not found", HostHub, "", anyModel,
			Error(404, codeRevisionNotFound, "Invalid rev id")},
		"link-origin": {"next page on another origin", HostHub, "GET", anyTree, foreignLink},
		"tree-bad-hash": {"a large file whose hash is none", HostHub, "GET", anyTree,
			replace(`"lfs":\{"oid":"\w+"`, `"lfs":{"oid":"../../../etc/passwd"`)},
		"tree-duplicate": {"the first entry twice", HostHub, "GET", anyTree,
			replace(`^\[(.*?\}),\{`, "[$1,$1,{")},
		"tree-empty": {"an empty page", HostHub, "GET", anyTree, replace(".*", "[]")},
		"tree-bad-path": {"an entry that climbs out of the folder", HostHub, "GET", anyTree,
			replace(`\]$`, outside)},
	}
}

// uploadFaults hit the batch call, the PUTs, the completion and the verify call.
func uploadFaults() map[string]namedFault {
	batch := func(about, pattern, instead string) namedFault {
		return namedFault{about, HostHub, "POST", anyBatch, replace(pattern, instead)}
	}
	object := func(about, instead string) namedFault {
		return batch(about, `"actions":.*?\},("authenticated")`, instead+"$1")
	}
	put := func(about string, a Action) namedFault {
		return namedFault{about, HostCDN, "PUT", "", a}
	}
	post := func(about, path string, a Action) namedFault {
		return namedFault{about, HostHub, "POST", path, a}
	}
	return map[string]namedFault{
		"batch-500": post("500 from the batch call", anyBatch,
			Error(500, "", "Internal Error")),
		"batch-quota": post("403 quota from the batch call", anyBatch,
			Error(403, "", quotaText)),
		"lfs-error": object("422 for every object inside a 200",
			`"error":{"code":422,"message":"Invalid object"},`),
		"lfs-429": object("429 for every object inside a 200",
			`"error":{"code":429,"message":"Too many requests"},`),
		"lfs-503": object("503 for every object inside a 200",
			`"error":{"code":503,"message":"Service Unavailable"},`),
		"lfs-quota": object("403 quota for every object inside a 200",
			`"error":{"code":403,"message":"`+quotaText+`"},`),
		"lfs-no-actions": object("claims that every object is stored", ""),
		"lfs-part-count": batch("one part URL too few", `,"\d{5}":"[^"]*"(,"chunk_size")`, "$1"),
		"lfs-chunk-size": batch("chunk_size is not a number", chunkSize, `"chunk_size":"many"`),
		"lfs-chunk-zero": batch("chunk_size is 0", chunkSize, `"chunk_size":"0"`),
		"put-500": put("500 to a PUT",
			StorageError(500, "InternalError", "We encountered an internal error.")),
		"put-503": put("503 SlowDown to a PUT",
			StorageError(503, "SlowDown", "Please reduce your request rate.")),
		"put-timeout": put("400 RequestTimeout to a PUT",
			StorageError(400, "RequestTimeout",
				"Your socket connection to the server was not read from or written to within the timeout period.")),
		"put-expired": put("403: the signed URL has expired",
			StorageError(403, "AccessDenied", "Request has expired")),
		"put-token": put("400: the credentials of the signed URL have expired",
			StorageError(400, "ExpiredToken", "The provided token has expired.")),
		"put-no-upload": put("404: the multipart upload is no more",
			StorageError(404, "NoSuchUpload", "The specified upload does not exist.")),
		"put-reset":       put("connection reset after 1000 bytes of the body", resetUpload(1000)),
		"put-reset-after": put("the PUT is done, then the connection is reset", After(Reset())),
		"put-wrong-etag": put("200 with the ETag of other bytes",
			setHeader(Header{"ETag": `"00000000000000000000000000000000"`})),
		"complete-400": post("400 to the completion", anyComplete,
			Error(400, "", "InvalidPart")),
		"complete-500": post("500 to the completion, nothing done", anyComplete,
			Error(500, "", "Internal Error")),
		"complete-after": post("the completion is done, then 500", anyComplete,
			After(Error(500, "", "Internal Error"))),
		"verify-404": post("verify does not know the object", anyVerify,
			Error(404, "", "Object was not uploaded")),
		"verify-500": post("500 to the verify call", anyVerify,
			Error(500, "", "Internal Error")),
		"verify-mismatch": post("verify sees another hash", anyVerify,
			Error(422, "", "sha256 mismatch")),
	}
}

// Pieces of answers.
const (
	chunkSize = `"chunk_size":"\d+"`
	outside   = `,{"type":"file","path":"../../outside.txt","oid":"0000000000000000000000000000000000000000","size":1}]`
)

const quotaText = "Private repository storage limit reached, please upgrade your plan to increase your private storage limit."

// commitFaults hit the commit call, and the call that creates a repo.
func commitFaults() map[string]namedFault {
	c := func(about string, a Action) namedFault {
		return namedFault{about, HostHub, "POST", anyCommit, a}
	}
	gateway := Status(504, Header{"Content-Type": "text/html"},
		"<html><body>Gateway Timeout</body></html>")
	return map[string]namedFault{
		"commit-412": c("412 without another commit",
			Error(412, "", "A commit has happened since. Please refresh and try again.")),
		"commit-409": c("409: another operation is in progress",
			Error(409, "", "another conflicting operation is in progress")),
		"commit-race":        c("another commit lands first", race),
		"commit-500":         c("500, not applied", Error(500, "", "Internal Error")),
		"commit-500-after":   c("applied, then 500", After(Error(500, "", "Internal Error"))),
		"commit-504-after":   c("applied, then 504", After(gateway)),
		"commit-reset-after": c("applied, then the connection is reset", After(Reset())),
		"commit-400-lfs": c("400: an LFS pointer without its object", Error(400, "",
			"Your push was rejected because an LFS pointer pointed to a file that does not exist")),
		"commit-quota": c("403 quota", Error(403, "", quotaText)),
		"commit-429": c("429: hourly commit quota",
			Status(429, Header{"RateLimit": ""},
				`{"error":"You have exceeded the rate limit for repository commits (128 per hour). Retry this action in about 1 hour."}`)),
		"create-409": {"409: another creation is in progress", HostHub, "POST",
			"/api/repos/create",
			Error(409, "", "Cannot create repo: another conflicting operation is in progress")},
		"create-403": {"403: no right in the namespace", HostHub, "POST",
			"/api/repos/create",
			Error(403, "", "You don't have the rights to create a model under this namespace")},
	}
}

// race lets another commit land on the branch of the request just before the request is handled.
func race(x *Exchange) {
	id, rev, _ := strings.Cut(strings.TrimPrefix(x.Request.URL.Path, "/api/models/"), "/commit/")
	x.Server.Push(id, rev, map[string][]byte{"race.txt": []byte(x.Request.URL.Path)})
	x.Next(x.ResponseWriter)
}

// foreignLink points the next page to the storage host.
func foreignLink(x *Exchange) {
	setHeader(Header{"Link": "<" + x.Server.CDNURL + x.Request.URL.EscapedPath() +
		`?cursor=x>; rel="next"`})(x)
}
