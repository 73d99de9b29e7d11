package hub

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
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

	cause error // what the request's loop returned; nil if someone else made the error
}

// Error returns one line, lower case, with what a bug report needs in parentheses. It never shows a
// token or a URL query.
func (e *Error) Error() string { return e.Unwrap().Error() }

// Unwrap returns the error that wraps the sentinel or the network error.
func (e *Error) Unwrap() error {
	if e.cause != nil {
		return e.cause
	}
	return e.failure()
}

// failure returns the failure as the request's loop describes it.
func (e *Error) failure() *wire.Error {
	if f, ok := errors.AsType[*wire.Error](e.cause); ok {
		return f
	}
	return &wire.Error{Op: e.Op, Side: e.Side, Method: e.Method, URL: e.URL, Status: e.Status,
		Code: e.Code, Message: e.Message, RequestID: e.RequestID, TokenSource: e.TokenSource,
		Attempts: e.Attempts, Repo: e.Repo, Endpoint: e.Endpoint, Err: e.Err}
}

// Brief returns one sentence if the Hub can't be reached, the token is missing, refused, or lacks a
// right, or a repo or revision is missing or gated. For other errors, whose details matter, it
// returns "".
func (e *Error) Brief() string { return e.failure().Brief() }

// GaveUp reports whether a loop used up its tries on the request, so that an outer loop doesn't
// multiply them.
func (e *Error) GaveUp() bool { return e.failure().GaveUp() }

// Temporary reports whether the same request may succeed later. The cause decides, or else the
// status.
func (e *Error) Temporary() bool { return e.failure().Temporary() }

// exported makes an *Error of the error of a request, with the same text. Each method of a Client
// that returns an error defers it.
func exported(err *error) { *err = export(*err) }

func export(err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	f, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	return &Error{Op: f.Op, Side: f.Side, Method: f.Method, URL: f.URL, Status: f.Status,
		Code: f.Code, Message: f.Message, RequestID: f.RequestID, TokenSource: f.TokenSource,
		Attempts: f.Attempts, Repo: f.Repo, Endpoint: f.Endpoint, Err: f.Err, cause: err}
}

// An EndpointError says that [Connection.Endpoint] isn't an address on the web.
type EndpointError struct{ Endpoint string }

func (e *EndpointError) Error() string { return (*wire.EndpointError)(e).Error() }

// newTransport returns the transport of a connection, which it checks.
func newTransport(c Connection) (*wire.Transport, error) {
	t, err := wire.New(c.options())
	if e, ok := errors.AsType[*wire.EndpointError](err); ok {
		err = (*EndpointError)(e)
	}
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	return t, nil
}

// The sentinels are the kinds of failures. Test for them with errors.Is.
var (
	ErrNotFound         error = wire.ErrNotFound
	ErrRevisionNotFound error = wire.ErrRevisionNotFound
	ErrEntryNotFound    error = wire.ErrEntryNotFound
	ErrUnauthorized     error = wire.ErrUnauthorized
	ErrGated            error = wire.ErrGated
	ErrForbidden        error = wire.ErrForbidden
	ErrQuota            error = wire.ErrQuota
	ErrNamespace        error = wire.ErrNamespace // also ErrForbidden
	ErrDisabled         error = wire.ErrDisabled
	ErrCard             error = wire.ErrCard
	ErrTooMany          error = wire.ErrTooMany
	ErrTooLarge         error = wire.ErrTooLarge
	ErrRateLimited      error = wire.ErrRateLimited
	ErrOffline          error = wire.ErrOffline
	ErrChanged          error = wire.ErrChanged
	ErrCorrupt          error = wire.ErrCorrupt
	ErrArgument         error = wire.ErrArgument // the caller's mistake, such as a range past the end
	ErrConflict         error = wire.ErrConflict
	ErrMissingObject    error = wire.ErrMissingObject
	ErrUnsafePath       error = wire.ErrUnsafePath
	ErrNotHub           error = wire.ErrNotHub
	ErrTrustedPublisher error = wire.ErrTrustedPublisher
	ErrEndpointParts          = wire.ErrEndpointParts
)

// Culprit says what a failure is about, if it says nothing about the repo that was asked for: "the
// network", "the Hub", or "the token". Otherwise it returns "".
func Culprit(err error) string { return wire.Culprit(err) }

// Away returns how long what Culprit names had been failing when err was returned: waiting for its
// end needn't last that much longer.
func Away(err error) time.Duration { return wire.Away(err) }

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

// Hint returns the next step for the user in one or two sentences, or "" if there is none.
func Hint(err error) string { return hint.Of(err).String() }
