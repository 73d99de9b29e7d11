package hub

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
	bucket string  // name of the hub's rate bucket, if told
	lane   laneKey // the governor's lane that the answer came in
}

// rateState is one RateLimit header: the requests that are left in a bucket, and the time until it fills again (IETF
// draft 9: "bucket";r=left;t=seconds).
type rateState struct {
	bucket string
	left   int64
	reset  time.Duration
}

// parseRateLimit reads the first member of a RateLimit header.
func parseRateLimit(h http.Header) (rateState, bool) {
	name, numbers := firstMember(h.Get("RateLimit"))
	left, ok := numbers["r"]
	reset, ok2 := numbers["t"]
	return rateState{bucket: oneLine(strings.Trim(name, `"`)), left: left, reset: seconds(reset)}, ok && ok2
}

// parseQuota reads q from RateLimit-Policy, 0 when it is not told.
func parseQuota(h http.Header) int64 {
	_, numbers := firstMember(h.Get("RateLimit-Policy"))
	return numbers["q"]
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
		return seconds(n), true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return max(untilDate(date, h, now), 0), true
}

// parseWait reads the wait that an answer asks for. A RateLimit header is the reason for a 429 only when nothing is left
// in its bucket.
func parseWait(resp *http.Response, now time.Time) waitHint {
	state, ok := parseRateLimit(resp.Header)
	if ok && state.left == 0 && resp.StatusCode == http.StatusTooManyRequests {
		return waitHint{after: state.reset, known: true, bucket: state.bucket}
	}
	if after, ok := parseRetryAfter(resp.Header, now); ok {
		return waitHint{after: after, known: true, bucket: state.bucket}
	}
	return waitHint{bucket: state.bucket}
}

// seconds converts without overflow; a year is as good as for ever here.
func seconds(n int64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(min(n, year)) * time.Second
}
