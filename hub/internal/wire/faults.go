package wire

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"
)

// A cause is a kind of failure. It passes if the same request may succeed later.
type cause struct {
	text   string
	passes bool
	kind   error // a wider sentinel, or nil
}

func (c *cause) Error() string { return c.text }
func (c *cause) Unwrap() error { return c.kind }

func lasting(text string) error { return &cause{text: text} }
func passing(text string) error { return &cause{text: text, passes: true} }

// passingTexts are failures of net/http and crypto/tls without a type: the server closed a
// connection between two requests, or a byte of a record was wrong.
var passingTexts = []string{"server closed idle connection", "bad record MAC"}

// Temporary reports whether the cause of err may pass. Only a lookup or a connection that failed,
// broke, or took too long may.
func Temporary(err error) bool {
	if c, ok := errors.AsType[*cause](err); ok {
		return c.passes
	}
	if err == nil || localFault(err) != 0 {
		return false
	}
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout() || IsA[*net.DNSError](err) ||
		IsA[syscall.Errno](err) && !IsA[*fs.PathError](err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || slices.ContainsFunc(passingTexts,
		func(text string) bool { return strings.Contains(err.Error(), text) })
}

// localFault returns this machine's own refusal in err, or 0. The network isn't at fault then, and
// a repeat would be refused too.
func localFault(err error) syscall.Errno {
	lookup, isLookup := errors.AsType[*net.DNSError](err)
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
		syscall.ENOSPC, syscall.EDQUOT,
		syscall.EROFS, syscall.EACCES, syscall.EPERM} {
		// a lookup has its cause in words only
		if errors.Is(err, e) || isLookup && strings.Contains(lookup.Err, e.Error()) {
			return e
		}
	}
	return 0
}

// NeverBegun reports whether there was no connection, so the request wasn't even sent.
func NeverBegun(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return IsA[*net.DNSError](err) || ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// IsA reports whether err is, or wraps, an error of type E.
func IsA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// The sentinels are the kinds of failures. Test for them with errors.Is.
var (
	ErrNotFound         = lasting("repo not found or private")
	ErrRevisionNotFound = lasting("revision not found")
	ErrNoRoute          = lasting("this Hub may lack the route")
	ErrEntryNotFound    = lasting("file not found in the repo")
	ErrUnauthorized     = lasting("token refused")
	ErrGated            = lasting("repo is gated")
	ErrForbidden        = lasting("not allowed")
	ErrDisabled         = lasting("repo is disabled")
	ErrQuota            = lasting("storage quota reached")
	ErrRateLimited      = passing("rate limit reached")
	ErrOffline          = lasting("offline mode is on (HF_HUB_OFFLINE)")
	ErrChanged          = lasting("file changed on the hub")
	ErrCorrupt          = lasting("bytes don't match the published hash")
	ErrTooLarge         = lasting("file is larger than allowed here")
	ErrConflict         = lasting("branch moved")
	ErrMissingObject    = lasting("the hub doesn't have a file that the commit names")
	ErrUnsafePath       = lasting("unsafe file name")
	ErrNotHub           = lasting("the answer isn't from a hub")
	ErrStalled          = passing("connection stalled")
	ErrInvalidCard      = lasting("model card is not valid")
	ErrTrustedPublisher = lasting("no token from trusted publishing")
	ErrInsists          = lasting("the Hub gives the same answer each time")
	errNoConnection     = lasting("no connection") // from the start
	errProxy            = lasting("the proxy refuses the connection")
)

// Failures on the way. Callers of the API see the first three only if no repeat helped.
var (
	ErrExpired  = passing("signed link expired")
	ErrLagging  = passing("connection is far slower than the others")
	ErrBadRange = passing("server sent other bytes than asked for")
	ErrBusy     = passing("the hub is busy with another change") // our own change
	ErrStale    = lasting("upload link refused")                 // ask for new links
	ErrNoETag   = passing("the storage acknowledged a part without an ETag")
	// instead of io.EOF, which readers take for the end of a file
	errNoAnswer  = passing("connection closed without an answer")
	errLocalBody = lasting("the file to send can't be read") // the network isn't at fault
	ErrBadURL    = lasting("unreadable URL")
	// a second try may reach the Hub
	errPage = &cause{"the answer isn't from a hub: it's a web page", true, ErrNotHub}
)
