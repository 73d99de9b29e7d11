package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
)

// permanent are those of our errors that no repeat will change.
var permanent = []error{ErrNotHub, ErrOffline, ErrChanged, ErrCorrupt, ErrTooLarge, ErrConflict,
	ErrUnsafePath,
	ErrMissingObject, ErrInvalidCard, errLocalBody, ErrBadURL, ErrStale}

// TemporaryNetwork tells broken connections, which are worth another try, from those that will
// break the same way again.
func TemporaryNetwork(err error) bool {
	return err != nil && localFault(err) == 0 && !slices.ContainsFunc(permanent,
		func(s error) bool { return errors.Is(err, s) }) &&
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
	ErrNotFound         = errors.New("repo not found or private")
	ErrRevisionNotFound = errors.New("revision not found")
	ErrNoRoute          = errors.New("this Hub may lack the route")
	ErrEntryNotFound    = errors.New("file not found in the repo")
	ErrUnauthorized     = errors.New("token refused")
	ErrGated            = errors.New("repo is gated")
	ErrForbidden        = errors.New("not allowed")
	ErrDisabled         = errors.New("repo is disabled")
	ErrQuota            = errors.New("storage quota reached")
	ErrRateLimited      = errors.New("rate limit reached")
	ErrOffline          = errors.New("offline mode is on (HF_HUB_OFFLINE)")
	ErrChanged          = errors.New("file changed on the hub")
	ErrCorrupt          = errors.New("bytes do not match the published hash")
	ErrTooLarge         = errors.New("file is larger than allowed here")
	ErrConflict         = errors.New("branch moved")
	ErrMissingObject    = errors.New("hub does not hold an object that the commit names")
	ErrUnsafePath       = errors.New("unsafe file name")
	ErrNotHub           = errors.New("answer does not come from a hub")
	ErrStalled          = errors.New("connection stalled")
	ErrInvalidCard      = errors.New("model card is not valid")
	ErrTrustedPublisher = errors.New("no token by trusted publishing")
	ErrInsists          = errors.New("the Hub gives the same answer each time")
	errNoConnection     = errors.New("no connection") // from the beginning
)

// What a request may end with on its way; callers of the API see the first three only if no repeat
// has helped.
var (
	ErrExpired  = errors.New("signed link expired")
	ErrBadRange = errors.New("server sent other bytes than asked for")
	ErrBusy     = errors.New("the hub is busy with another change") // of ours; it passes
	ErrStale    = errors.New("upload link refused")                 // ask for new ones
	ErrNoETag   = errors.New("the storage acknowledged a part without an ETag")
	// in place of io.EOF, which readers take for a file's end
	errNoAnswer  = errors.New("connection closed without an answer")
	errLocalBody = errors.New("the file to send cannot be read") // the network is not at fault
	ErrBadURL    = errors.New("unreadable URL")
)
