package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/disk"
)

// maxErrorBody limits how much of an error answer is read.
const maxErrorBody = 64 << 10

// read fills in e from an answer, and reports whether the answer is a web page. The headers'
// message counts before the body's.
func (e *Error) read(resp *http.Response, now time.Time) (page bool) {
	body, _ := disk.ReadAll(resp.Body, maxErrorBody)
	h := resp.Header
	e.Status = resp.StatusCode
	// The operators can search for one of these ids.
	e.RequestID = OneLine(cmp.Or(h.Get("X-Request-Id"), h.Get("X-Amzn-Trace-Id"),
		h.Get("X-Amz-Request-Id"), h.Get("X-Amz-Cf-Id")))
	e.Code = OneLine(h.Get("X-Error-Code"))
	e.Message = OneLine(h.Get("X-Error-Message"))
	e.wait = parseWait(resp, now)
	if e.Message == "" {
		e.readBody(h.Get("Content-Type"), body)
	}
	if e.Message == http.StatusText(e.Status) {
		e.Message = "" // the status says it
	}
	return isPage(h, body)
}

// readBody takes the message from a JSON body, a storage's XML, or plain text. HTML is never shown.
func (e *Error) readBody(contentType string, body []byte) {
	trimmed := strings.TrimSpace(string(body))
	switch {
	case strings.HasPrefix(trimmed, "{"):
		var doc any
		if json.Unmarshal([]byte(trimmed), &doc) == nil {
			e.Message = OneLine(join("; ", texts(doc)...))
		}
	case strings.Contains(contentType, "html"):
	case strings.HasPrefix(trimmed, "<?xml"), strings.HasPrefix(trimmed, "<Error>"):
		for _, m := range storageError.FindAllStringSubmatch(trimmed, -1) {
			switch text := OneLine(unescape.Replace(m[2])); m[1] {
			case "Code":
				e.Code = text
			case "Message":
				e.Message = text
			}
		}
	case strings.HasPrefix(contentType, "text/plain"):
		e.Message = OneLine(trimmed)
	}
}

// storageError matches what a storage's XML says is wrong. A reader of all XML would be a part of
// what a page loads.
var storageError = regexp.MustCompile(`<(Code|Message)>([^<]*)</`)

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&")

// messageKeys are the members in which the Hub, FastAPI (detail), and OAuth say what's wrong.
var messageKeys = []string{"error", "errors", "detail", "error_description", "message", "msg"}

// texts returns what a JSON body says is wrong: strings, or lists and objects of them.
func texts(v any) (found []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			found = append(found, texts(e)...)
		}
	case map[string]any:
		for _, key := range messageKeys {
			found = append(found, texts(v[key])...)
		}
	}
	return found
}

var quotaText = regexp.MustCompile(
	`(?i)storage (limit|patterns?|quota|space)|quota|exceed(s|ed)? (your|the) .*(storage|limit)`)

var byCode = map[string]error{"RepoNotFound": ErrNotFound, "RevisionNotFound": ErrRevisionNotFound,
	"EntryNotFound": ErrEntryNotFound, "GatedRepo": ErrGated}

// byStatus are the causes of answers without a code, unless classify knows better.
var byStatus = map[int]error{
	http.StatusUnauthorized: ErrUnauthorized, http.StatusForbidden: ErrForbidden,
	http.StatusPaymentRequired: ErrForbidden,
	http.StatusNotFound:        ErrNoRoute, http.StatusGone: ErrNoRoute,
	http.StatusMethodNotAllowed: ErrNoRoute, http.StatusNotImplemented: ErrNoRoute,
	http.StatusConflict: ErrConflict, http.StatusPreconditionFailed: ErrConflict,
	http.StatusTooManyRequests: ErrRateLimited,
}

// classify returns the sentinel of an answer from the hub itself. Without a code, only a request
// that finds the repo can get a 404 for a missing repo: otherwise 404 means that this hub lacks the
// route. Without a token, private and missing repos get the same refusal.
func (e *Error) classify(finds bool) error {
	cause := byStatus[e.Status]
	coded := byCode[e.Code]
	anonymous := e.TokenSource == "" && !strings.Contains(strings.ToLower(e.Message), "credentials")
	switch {
	case coded != nil:
		return coded
	case finds &&
		(e.Status == http.StatusNotFound || errors.Is(cause, ErrUnauthorized) && anonymous):
		return ErrNotFound
	case errors.Is(cause, ErrForbidden) && strings.Contains(e.Message,
		"Access to this resource is disabled"):
		return ErrDisabled
	case (errors.Is(cause, ErrForbidden) || e.Status == http.StatusRequestEntityTooLarge) &&
		quotaText.MatchString(e.Message):
		return ErrQuota
	}
	return cause
}

// A waitHint says how long an answer asks to wait.
type waitHint struct {
	after  time.Duration // from Retry-After, or when an empty bucket fills again
	known  bool
	bucket string // the hub's rate bucket; "" if unknown
	lane   lane   // of the answer
}

// rateLimit is the first member of a RateLimit header, as hubs write it: "bucket";r=left;t=seconds
// (IETF draft 9).
var rateLimit = regexp.MustCompile(`^"?([^";,]*)"?;\s*r=(\d+);\s*t=(\d+)`)

// parseRateLimit returns the bucket of a RateLimit header, whether it's empty, and when it fills
// again.
func parseRateLimit(h http.Header) (bucket string, reset time.Duration, empty bool) {
	m := rateLimit.FindStringSubmatch(h.Get("RateLimit"))
	if m == nil {
		return "", 0, false
	}
	until, _ := strconv.ParseInt(m[3], 10, 64) // if it's too large, the largest
	return OneLine(m[1]), seconds(until), strings.Trim(m[2], "0") == ""
}

// parseRetryAfter reads both forms of Retry-After, seconds and an HTTP date. It compares the date
// with the answer's own Date, because this machine's clock may be wrong.
func parseRetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
		return seconds(n), true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return max(date.Sub(now), 0), true
}

// parseWait reads how long an answer asks to wait. A RateLimit header explains a 429 only if its
// bucket is empty.
func parseWait(resp *http.Response, now time.Time) waitHint {
	bucket, reset, empty := parseRateLimit(resp.Header)
	if empty && resp.StatusCode == http.StatusTooManyRequests {
		return waitHint{after: reset, known: true, bucket: bucket}
	}
	after, known := parseRetryAfter(resp.Header, now)
	return waitHint{after: after, known: known, bucket: bucket}
}
