package hub

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// An Error is a failed request: what was asked, and what came back. It wraps its kind, one of the
// sentinels, if it has one.
type Error struct {
	Op          string // "read model info of ns/name"
	Side        string // "source", "target", or "", from Connection.Side
	Method      string
	URL         string // without query, user, and fragment
	Status      int    // 0 without an answer
	Code        string // X-Error-Code, or the storage's error code
	Message     string // from the server, one line
	RequestID   string
	TokenSource string // where the request's token came from; "" if it has none
	Attempts    int    // requests made before giving up; 0 if no repeat could help
	Repo        string
	Endpoint    string
	Err         error // sentinel or network error

	progress bool          // bytes came first, so the count of failures starts again
	sent     string        // the token that the hub refused; never shown
	advice   hint.Hint     // what to do about it, from transport.refused
	login    string        // how to set a token, from Connection.Login
	variable string        // that names the endpoint; "" if it is the public one
	wait     time.Duration // that the answer asks for
	timed    bool          // it asks for one
	lane     lane          // of URL
	away     time.Duration // how long its host, or at least this request, had failed by then
}

// Error returns one line, lower case, with what a bug report needs in parentheses. It never shows a
// token or a URL query.
func (e *Error) Error() string {
	cause, request, attempts, id := "", "", "", ""
	if e.Err != nil {
		cause = oneLine(e.Err.Error()) // may quote a server, or its certificate
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

// status returns the answer's status in words, or "" without an answer.
func (e *Error) status() string {
	if e.Status == 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
}

// join joins the parts that aren't empty.
func join(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), by)
}

// plain are causes that a person understands without the request's details.
var plain = []error{ErrRevisionNotFound, ErrNotFound, ErrGated, ErrUnauthorized, ErrDisabled}

// Brief returns one sentence if the Hub can't be reached or doesn't answer, the token is missing,
// refused, or lacks a right, or a repo or revision is missing or gated. For other errors, whose
// details matter, it returns "".
func (e *Error) Brief() string {
	u, _ := url.Parse(e.URL)
	none, isNone := errors.AsType[*notConnectedError](e.Err)
	switch {
	case isNone:
		return none.inWords()
	case e.Status == 0 && e.Err != nil && u != nil && u.Host != "" &&
		!isA[*cause](e.Err) && !isA[*fs.PathError](e.Err):
		return join(": ", e.Op, u.Host, inWords(e.Err))
	case errors.Is(e, ErrUnauthorized) && e.TokenSource == "":
		return "no token is set"
	case e.Repo == "" && errors.Is(e, ErrUnauthorized):
		return fmt.Sprintf("%v from %s", e.Err, e.TokenSource)
	case e.Repo == "":
	case errors.Is(e, ErrForbidden) && e.TokenSource != "":
		return join(": ", fmt.Sprintf("the token from %s can't %s", e.TokenSource, e.Op), e.Message)
	case slices.ContainsFunc(plain, func(c error) bool { return errors.Is(e, c) }):
		return e.Repo + ": " + e.Err.Error()
	}
	return ""
}

// Brief returns the text of an error, for the Hub's errors without the request; "" for nil.
func Brief(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return cmp.Or(e.Brief(), err.Error())
	}
	return err.Error()
}

// errorOf returns the *Error that err is or wraps, or an empty one.
func errorOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{}
}

// Unwrap returns the error that wraps the sentinel or the network error.
func (e *Error) Unwrap() error { return advised{e} }

// An advised error is an Error with its hint, for [hint.Of]. The method can't be the Error's own:
// no program outside could name the type that it returns.
type advised struct{ of *Error }

func (a advised) Error() string   { return a.of.Error() }
func (a advised) Unwrap() error   { return a.of.Err }
func (a advised) Hint() hint.Hint { return a.of.hint() }

// under returns a copy of the error with another sentinel.
func (e *Error) under(sentinel error) *Error {
	renamed := *e
	renamed.Err = sentinel
	return &renamed
}

// GaveUp reports whether a loop used up its tries on the request, so that an outer loop doesn't
// multiply them.
func (e *Error) GaveUp() bool { return e.Attempts > 0 }

// Temporary reports whether the same request may succeed later. The cause decides, or else the
// status.
func (e *Error) Temporary() bool {
	if e.Err != nil {
		return temporary(e.Err)
	}
	return passes(e.Status) ||
		e.Status == http.StatusBadRequest && e.Code == "RequestTimeout" // S3: the body came too slowly
}

// passes reports whether a status means a temporary failure.
func passes(status int) bool {
	return slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout}, status)
}

// oneLine makes a server's text fit for a terminal: one line of limited length, without control
// characters.
func oneLine(s string) string {
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

// seconds converts without overflow. A year is long enough here.
func seconds(n int64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(min(n, year)) * time.Second
}
