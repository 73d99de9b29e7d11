package hub

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

// read fills in e from an answer. The headers' message counts before the body's.
func (e *Error) read(resp *http.Response, now time.Time) {
	body, _ := disk.ReadAll(resp.Body, maxErrorBody)
	h := resp.Header
	e.Status = resp.StatusCode
	// The operators of the Hub and of S3 can search for these ids.
	e.RequestID = requestID(h)
	e.Code = oneLine(h.Get("X-Error-Code"))
	e.Message = oneLine(h.Get("X-Error-Message"))
	e.wait, e.timed = parseWait(h, now)
	if e.Message == "" && !strings.Contains(h.Get("Content-Type"), "html") {
		e.readBody(strings.TrimSpace(string(body)))
	}
	if e.Message == http.StatusText(e.Status) {
		e.Message = "" // the status says it
	}
}

// readBody takes the message from a JSON body, a storage's XML, or plain text.
func (e *Error) readBody(body string) {
	var doc map[string]any
	switch err := json.Unmarshal([]byte(body), &doc); {
	case err == nil:
		e.Message = oneLine(join("; ", texts(doc)...))
	case !strings.HasPrefix(body, "<"):
		e.Message = oneLine(body)
	default:
		for _, m := range storageError.FindAllStringSubmatch(body, -1) {
			if m[1] == "Code" {
				e.Code = oneLine(m[2])
			} else {
				e.Message = oneLine(m[2])
			}
		}
	}
}

// texts returns what a JSON body says is wrong: strings, or lists and objects of them. The Hub,
// OAuth, and FastAPI (detail), with which KohakuHub and olah are written, use these members.
func texts(v any) (found []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			found = append(found, texts(e)...)
		}
	case map[string]any:
		for _, key := range []string{"error", "errors", "detail", "error_description", "message", "msg"} {
			found = append(found, texts(v[key])...)
		}
	}
	return found
}

// storageError matches what S3's XML says is wrong. A reader of all XML would be a part of what a
// page loads.
var storageError = regexp.MustCompile(`<(Code|Message)>([^<]*)</`)

// quotaText matches what the Hub says of full storage, for example in
// https://github.com/huggingface/huggingface_hub/issues/3049 and 3366.
var quotaText = regexp.MustCompile(
	`(?i)storage (limit|patterns?|quota|space)|quota|exceed(s|ed)? (your|the) .*(storage|limit)`)

var byCode = map[string]error{"RepoNotFound": ErrNotFound, "RevisionNotFound": ErrRevisionNotFound,
	"EntryNotFound": ErrEntryNotFound, "GatedRepo": ErrGated}

// byStatus are the causes of answers without a code, unless classify knows better.
var byStatus = map[int]error{
	http.StatusUnauthorized: ErrUnauthorized, http.StatusForbidden: ErrForbidden,
	// the Hub, to create a repo: create_repo of the Python client
	http.StatusPaymentRequired: ErrForbidden,
	http.StatusNotFound:        errNoRoute,
	// olah answers a write so, and KohakuHub what it can't do (not_implemented.py)
	http.StatusMethodNotAllowed: errNoRoute, http.StatusNotImplemented: errNoRoute,
	// the Hub, if a repo or a branch is there, and if a commit's parent is no longer the head
	http.StatusConflict: ErrConflict, http.StatusPreconditionFailed: ErrConflict,
	http.StatusProxyAuthRequired:          errProxy, // RFC 9110, section 15.5.8
	http.StatusUnavailableForLegalReasons: errLegal, // RFC 7725
	http.StatusTooManyRequests:            ErrRateLimited,
	// in front of a hub:
	// https://nginx.org/en/docs/http/ngx_http_core_module.html#client_max_body_size
	http.StatusRequestEntityTooLarge: errTooLong,
}

// byText are the causes that only the Hub's words tell apart. internal/hubtest/rules.go has the
// answers in full, and where they were seen.
var byText = []struct {
	text  *regexp.Regexp
	cause error
}{
	{regexp.MustCompile(`(?i)under (the|this) namespace`), ErrNamespace},
	{regexp.MustCompile(`(?i)must use a write token`), errReadToken},
	{regexp.MustCompile(`(?i)access to this resource is disabled`), ErrDisabled},
	{regexp.MustCompile(`(?i)invalid (metadata|yaml) in readme`), ErrCard},
	{regexp.MustCompile(`(?i)too many files per directory|maximum individual file size|` +
		`files larger than \d+ ?[mg]i?b`), ErrTooMany},
}

// classify returns the sentinel of an answer from the hub itself. hfd sends no codes. Without one,
// only a request that finds the repo can get a 404 for a missing repo: otherwise 404 means that
// this hub lacks the route. Without a token, the Hub answers 401 for private and for missing repos;
// a refused token is 401 "Invalid credentials". hf_raise_for_status of the Python client tells them
// apart in the same way.
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
	// the Hub's storage is full with 403, KohakuHub's with 413
	case (errors.Is(cause, ErrForbidden) || errors.Is(cause, errTooLong)) &&
		quotaText.MatchString(e.Message):
		return ErrQuota
	}
	if e.Status >= 400 && e.Status < 500 && !passes(e.Status) {
		for _, by := range byText {
			if by.text.MatchString(e.Message) {
				return by.cause
			}
		}
	}
	return cause
}

// rateLimit is the first member of a RateLimit header whose bucket is empty, as hubs write it:
// "bucket";r=left;t=seconds (IETF draft 9). The header is on every answer, also on a 429 of another
// limit: https://github.com/huggingface/huggingface_hub/pull/4662.
var rateLimit = regexp.MustCompile(`^\s*"?([^;,"]*)"?\s*;\s*r=0;\s*t=(\d+)`)

// emptyBucket returns how long an answer's bucket stays empty, and its name; 0 if it isn't empty,
// or the answer doesn't say so. The next request before that would be refused:
// https://huggingface.co/docs/hub/rate-limits.
func emptyBucket(h http.Header) (wait time.Duration, bucket string) {
	m := rateLimit.FindStringSubmatch(h.Get("RateLimit"))
	if m == nil {
		return 0, ""
	}
	n, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return 0, ""
	}
	return min(seconds(n), maxHeaderWait), oneLine(m[1])
}

// parseWait reads how long a refusal asks to wait: until an empty bucket fills again, or else what
// Retry-After says. The Hub sends seconds there; a CDN or a proxy in between may send a date (RFC
// 9110, section 10.2.3), which is compared with the answer's own.
func parseWait(h http.Header, now time.Time) (after time.Duration, known bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if m := rateLimit.FindStringSubmatch(h.Get("RateLimit")); m != nil {
		text = m[2]
	}
	if until, err := http.ParseTime(text); err == nil {
		if sent, err := http.ParseTime(h.Get("Date")); err == nil {
			now = sent
		}
		return max(0, until.Sub(now)), true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return seconds(n), n >= 0 && (err == nil || errors.Is(err, strconv.ErrRange))
}

// requestID returns the name under which a Hub or a storage can look a request up.
func requestID(h http.Header) string {
	return oneLine(cmp.Or(h.Get("X-Request-Id"), h.Get("X-Amz-Request-Id")))
}
