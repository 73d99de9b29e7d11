package hubtest

import (
	"strings"
)

// uploadFaults hit the batch call, the PUTs, the completion and the verify call.
func uploadFaults() map[string]namedFault {
	batch := func(about string, edit func(o map[string]any)) namedFault {
		return namedFault{about, HostHub, "POST", anyBatch, EditJSON(eachObject(edit))}
	}
	put := func(about string, a Action) namedFault { return namedFault{about, HostCDN, "PUT", "", a} }
	post := func(about, path string, a Action) namedFault { return namedFault{about, HostHub, "POST", path, a} }
	return map[string]namedFault{
		"batch-500":       post("500 from the batch call", anyBatch, Error(500, "", "Internal Error")),
		"batch-quota":     post("403 quota from the batch call", anyBatch, Error(403, "", quotaText)),
		"lfs-error":       batch("422 for every object inside a 200", objectError(422, "Invalid object")),
		"lfs-429":         batch("429 for every object inside a 200", objectError(429, "Too many requests")),
		"lfs-503":         batch("503 for every object inside a 200", objectError(503, "Service Unavailable")),
		"lfs-quota":       batch("403 quota for every object inside a 200", objectError(403, quotaText)),
		"lfs-no-actions":  batch("claims that every object is stored", func(o map[string]any) { delete(o, "actions") }),
		"lfs-part-count":  batch("one part URL too few", editHeader(dropLastPart)),
		"lfs-chunk-size":  batch("chunk_size is not a number", editHeader(func(h map[string]any) { h["chunk_size"] = "many" })),
		"lfs-chunk-zero":  batch("chunk_size is 0", editHeader(func(h map[string]any) { h["chunk_size"] = "0" })),
		"put-500":         put("500 to a PUT", StorageError(500, "InternalError", "We encountered an internal error.")),
		"put-503":         put("503 SlowDown to a PUT", StorageError(503, "SlowDown", "Please reduce your request rate.")),
		"put-timeout":     put("400 RequestTimeout to a PUT", StorageError(400, "RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period.")),
		"put-expired":     put("403: the signed URL has expired", StorageError(403, "AccessDenied", "Request has expired")),
		"put-token":       put("400: the credentials of the signed URL have expired", StorageError(400, "ExpiredToken", "The provided token has expired.")),
		"put-no-upload":   put("404: the multipart upload is no more", StorageError(404, "NoSuchUpload", "The specified upload does not exist.")),
		"put-reset":       put("connection reset after 1000 bytes of the body", resetUpload(1000)),
		"put-reset-after": put("the PUT is done, then the connection is reset", After(Reset())),
		"put-no-etag":     put("200 without an ETag", setHeader(Header{"ETag": ""})),
		"put-wrong-etag":  put("200 with the ETag of other bytes", setHeader(Header{"ETag": `"00000000000000000000000000000000"`})),
		"put-stall":       put("the body is read, no answer comes", stall(-1)),
		"complete-400":    post("400 to the completion", anyComplete, Error(400, "", "InvalidPart")),
		"complete-500":    post("500 to the completion, nothing done", anyComplete, Error(500, "", "Internal Error")),
		"complete-after":  post("the completion is done, then 500", anyComplete, After(Error(500, "", "Internal Error"))),
		"verify-404":      post("verify does not know the object", anyVerify, Error(404, "", "Object was not uploaded")),
		"verify-500":      post("500 to the verify call", anyVerify, Error(500, "", "Internal Error")),
		"verify-mismatch": post("verify sees another hash", anyVerify, Error(422, "", "sha256 mismatch")),
	}
}

const quotaText = "Private repository storage limit reached, please upgrade your plan to increase your private storage limit."

// commitFaults hit the commit call and what comes before the uploads.
func commitFaults() map[string]namedFault {
	c := func(about string, a Action) namedFault { return namedFault{about, HostHub, "POST", anyCommit, a} }
	gateway := Status(504, Header{"Content-Type": "text/html"}, "<html><body>Gateway Timeout</body></html>")
	return map[string]namedFault{
		"commit-412":         c("412 without another commit", Error(412, "", "A commit has happened since. Please refresh and try again.")),
		"commit-409":         c("409: another operation is in progress", Error(409, "", "another conflicting operation is in progress")),
		"commit-race":        c("another commit lands first", race),
		"commit-500":         c("500, not applied", Error(500, "", "Internal Error")),
		"commit-500-after":   c("applied, then 500", After(Error(500, "", "Internal Error"))),
		"commit-504-after":   c("applied, then 504", After(gateway)),
		"commit-reset-after": c("applied, then the connection is reset", After(Reset())),
		"commit-400-lfs":     c("400: an LFS pointer without its object", Error(400, "", "Your push was rejected because an LFS pointer pointed to a file that does not exist")),
		"commit-quota":       c("403 quota", Error(403, "", quotaText)),
		"commit-429":         c("429: hourly commit quota", Status(429, Header{"RateLimit": ""}, `{"error":"You have exceeded the rate limit for repository commits (128 per hour). Retry this action in about 1 hour."}`)),
		"create-409":         {"409: another creation is in progress", HostHub, "POST", "/api/repos/create", Error(409, "", "Cannot create repo: another conflicting operation is in progress")},
		"create-403":         {"403: no right in the namespace", HostHub, "POST", "/api/repos/create", Error(403, "", "You don't have the rights to create a model under this namespace")},
		"duplicate-500":      {"500 from the copy route", HostHub, "POST", "/api/models/*/lfs-files/duplicate", Error(500, "", "Internal Error")},
	}
}

// race lets another commit land on the branch of the request just before the request is handled.
func race(x *Exchange) {
	id, rev, _ := strings.Cut(strings.TrimPrefix(x.Request.URL.Path, "/api/models/"), "/commit/")
	x.Server.Push(id, rev, map[string][]byte{"race.txt": []byte(x.Request.URL.Path)})
	x.Next(x.ResponseWriter)
}

// eachObject applies edit to every object of a batch answer.
func eachObject(edit func(map[string]any)) func(any) any {
	return func(v any) any {
		m, _ := v.(map[string]any)
		list, _ := m["objects"].([]any)
		for _, o := range list {
			if o, ok := o.(map[string]any); ok {
				edit(o)
			}
		}
		return v
	}
}

func objectError(code int, message string) func(map[string]any) {
	return func(o map[string]any) {
		delete(o, "actions")
		o["error"] = map[string]any{"code": code, "message": message}
	}
}

// editHeader applies edit to the header of a multipart upload action.
func editHeader(edit func(map[string]any)) func(map[string]any) {
	return func(o map[string]any) {
		actions, _ := o["actions"].(map[string]any)
		upload, _ := actions["upload"].(map[string]any)
		if header, ok := upload["header"].(map[string]any); ok {
			edit(header)
		}
	}
}

func dropLastPart(h map[string]any) {
	last := ""
	for k := range h {
		if k != "chunk_size" && k > last {
			last = k
		}
	}
	delete(h, last)
}

// foreignLink points the next page to the storage host.
func foreignLink(x *Exchange) {
	setHeader(Header{"Link": "<" + x.Server.CDNURL + x.Request.URL.EscapedPath() + `?cursor=x>; rel="next"`})(x)
}

func duplicateFirst(v any) any {
	if list, ok := v.([]any); ok && len(list) > 0 {
		return append(list, list[0])
	}
	return v
}

func climbingPath(v any) any {
	if list, ok := v.([]any); ok {
		return append(list, map[string]any{"type": "file", "path": "../../outside.txt", "oid": strings.Repeat("0", 40), "size": 1})
	}
	return v
}
