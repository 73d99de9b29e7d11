package wire

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Error is a request that failed: what was asked, of whom, and what came back.
type Error struct {
	Op          string // "read model info of ns/name"
	Side        string // "source", "target" or empty, from Options.Side
	Method      string
	URL         string // without query, user and fragment
	Status      int    // 0 when no answer came
	Code        string // X-Error-Code, or the storage's error code
	Message     string // the server's own words, one line
	RequestID   string
	TokenSource string // where the token that was sent came from; empty when none was sent
	Attempts    int    // requests made before the last was given up; 0 if no repeat could help
	Repo        string
	Endpoint    string

	Err      error // sentinel or network error
	Progress bool  // bytes came before it: the count of failures starts again

	needs string // the right that it takes
	login string // how to send a token, from Options.Login
	wait  waitHint
}

// Error gives one line, lower case, with what a bug report needs in brackets; never a token or a
// URL query.
func (e *Error) Error() string {
	cause, request, attempts, id := "", "", "", ""
	if e.Err != nil {
		cause = OneLine(e.Err.Error()) // which may quote a server, or its certificate
	}
	if e.Method != "" {
		request = e.Method + " " + e.URL
	}
	if e.Attempts > 1 {
		attempts = fmt.Sprintf("%d attempts", e.Attempts)
	}
	if e.RequestID != "" {
		id = "request id " + e.RequestID
	}
	text := join(": ", e.Side, e.Op, cause, e.status(), e.Message)
	if notes := join(", ", request, attempts, id); notes != "" {
		text += " (" + notes + ")"
	}
	return text
}

// status is the answer's status in words; "" when no answer came.
func (e *Error) status() string {
	if e.Status == 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
}

// join leaves out what is empty.
func join(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), by)
}

// Brief says in one sentence that the Hub cannot be reached, that a token is missing or refused or
// lacks a right, or that a repo or a revision is not there, or gated. It is "" for all other
// errors, whose details matter.
func (e *Error) Brief() string {
	switch {
	case errors.Is(e, errNoConnection):
		return e.Err.Error()
	case errors.Is(e, ErrUnauthorized) && e.TokenSource == "":
		return "no token is set"
	case e.Repo == "":
		return ""
	case errors.Is(e, ErrRevisionNotFound):
		return e.Repo + ": no such revision" // the hint names what it can be
	case errors.Is(e, ErrNotFound):
		return e.Repo + ": no such repo, or it is private"
	case errors.Is(e, ErrForbidden) && e.TokenSource != "":
		return join(": ", "may not "+e.Op,
			fmt.Sprintf("the token from %s has no %s", e.TokenSource, e.needs), e.Message)
	case errors.Is(e, ErrGated):
		return e.Repo + ": this repo is gated, and the Hub does not let you read it"
	case errors.Is(e, ErrUnauthorized):
		return e.Repo + ": the Hub refuses the token"
	}
	return ""
}

// ErrorOf returns the *Error that err is or wraps, or an empty one.
func ErrorOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{}
}

// Unwrap gives the sentinel or the network error.
func (e *Error) Unwrap() error { return e.Err }

// Under gives the error under another sentinel.
func (e *Error) Under(sentinel error) *Error {
	renamed := *e
	renamed.Err = sentinel
	return &renamed
}

// GaveUp says whether a loop has spent its tries on the request, so that an outer loop must not
// multiply them.
func (e *Error) GaveUp() bool { return e.Attempts > 0 }

// Temporary reports whether the same request may succeed later. The cause decides; the status
// decides where there is none. The retry loop follows it.
func (e *Error) Temporary() bool {
	if e.Err != nil {
		return Temporary(e.Err)
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.Status == http.StatusBadRequest && e.Code == "RequestTimeout" // S3's for a slow body
}

// OneLine makes a server's text fit for a terminal: no control characters, one line, bounded.
func OneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 500 {
		s = s[:500] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// seconds converts without overflow; a year is as good as for ever here.
func seconds(n int64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(min(n, year)) * time.Second
}
