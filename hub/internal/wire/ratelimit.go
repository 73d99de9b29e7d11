package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// waitHint says how long an answer asks to wait.
type waitHint struct {
	after  time.Duration // from Retry-After, or the window's reset when nothing is left
	known  bool
	bucket string // name of the hub's rate bucket, if told
	lane   lane   // that the answer came in
}

// parseRateLimit reads the first member of a RateLimit header (IETF draft 9: "bucket";r=left;t=seconds): the bucket's name, and
// the time until it fills again if nothing is left in it.
func parseRateLimit(h http.Header) (bucket string, reset time.Duration, empty bool) {
	name, numbers := firstMember(h.Get("RateLimit"))
	left, told := numbers["r"]
	after, until := numbers["t"]
	return OneLine(strings.Trim(name, `"`)), Seconds(after), told && until && left == 0
}

// firstMember splits the first of a header's members, such as "api";r=3;t=60, into its name and its numbers.
func firstMember(header string) (name string, numbers map[string]int64) {
	member, _, _ := strings.Cut(header, ",")
	fields := strings.Split(member, ";")
	numbers = map[string]int64{}
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(strings.TrimSpace(f), "=")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
			numbers[key] = n
		}
	}
	return strings.TrimSpace(fields[0]), numbers
}

// parseRetryAfter reads both forms of Retry-After: seconds and HTTP date.
func parseRetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
		return Seconds(n), true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return max(UntilDate(date, h, now), 0), true
}

// parseWait reads the wait that an answer asks for. A RateLimit header is the reason for a 429 only when nothing is left
// in its bucket.
func parseWait(resp *http.Response, now time.Time) waitHint {
	bucket, reset, empty := parseRateLimit(resp.Header)
	if empty && resp.StatusCode == http.StatusTooManyRequests {
		return waitHint{after: reset, known: true, bucket: bucket}
	}
	after, known := parseRetryAfter(resp.Header, now)
	return waitHint{after: after, known: known, bucket: bucket}
}

// UntilDate is how far off a date is that an answer names. Both are the server's word: this machine's clock may be wrong.
func UntilDate(date time.Time, header http.Header, now time.Time) time.Duration {
	if told, err := http.ParseTime(header.Get("Date")); err == nil {
		now = told
	}
	return date.Sub(now)
}
