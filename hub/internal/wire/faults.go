package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"syscall"
)

// cause is a kind of failure. It passes if the same request may succeed later.
type cause struct {
	text   string
	passes bool
}

func (c *cause) Error() string { return c.text }

func lasting(text string) error { return &cause{text, false} }
func passing(text string) error { return &cause{text, true} }

// Temporary reports whether the cause of err may pass. A broken connection does, unless it will
// break the same way again.
func Temporary(err error) bool {
	if c, ok := errors.AsType[*cause](err); ok {
		return c.passes
	}
	return err != nil && localFault(err) == 0 &&
		!IsA[tls.RecordHeaderError](err) && !IsA[x509.UnknownAuthorityError](err) &&
		!IsA[x509.HostnameError](err) && !IsA[x509.CertificateInvalidError](err)
}

// localFault gives the refusal by this machine's own system that err tells of, 0 if there is none.
// The network is not at fault then, and a repeat meets the same refusal.
func localFault(err error) syscall.Errno {
	lookup, isLookup := errors.AsType[*net.DNSError](err)
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
		syscall.ENOSPC, syscall.EDQUOT,
		syscall.EROFS, syscall.EACCES, syscall.EPERM} {
		// a look-up has its cause in words only
		if errors.Is(err, e) || isLookup && strings.Contains(lookup.Err, e.Error()) {
			return e
		}
	}
	return 0
}

// NeverBegun says that no connection came about, so that the request was not even begun.
func NeverBegun(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return IsA[*net.DNSError](err) || ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// IsA says whether err is, or wraps, an error of type E.
func IsA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// The sentinels say what kind of failure an error is; test with errors.Is.
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
	ErrCorrupt          = lasting("bytes do not match the published hash")
	ErrTooLarge         = lasting("file is larger than allowed here")
	ErrConflict         = lasting("branch moved")
	ErrMissingObject    = lasting("hub does not hold an object that the commit names")
	ErrUnsafePath       = lasting("unsafe file name")
	ErrNotHub           = lasting("answer does not come from a hub")
	ErrStalled          = passing("connection stalled")
	ErrInvalidCard      = lasting("model card is not valid")
	ErrTrustedPublisher = lasting("no token by trusted publishing")
	ErrInsists          = lasting("the Hub gives the same answer each time")
	errNoConnection     = lasting("no connection") // from the beginning
)

// What a request may end with on its way; callers of the API see the first three only if no repeat
// has helped.
var (
	ErrExpired  = passing("signed link expired")
	ErrLagging  = passing("connection is far slower than the others")
	ErrBadRange = passing("server sent other bytes than asked for")
	ErrBusy     = passing("the hub is busy with another change") // of ours; it passes
	ErrStale    = lasting("upload link refused")                 // ask for new ones
	ErrNoETag   = passing("the storage acknowledged a part without an ETag")
	// in place of io.EOF, which readers take for a file's end
	errNoAnswer  = passing("connection closed without an answer")
	errLocalBody = lasting("the file to send cannot be read") // the network is not at fault
	ErrBadURL    = lasting("unreadable URL")
)
