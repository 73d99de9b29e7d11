package hub

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// A cause is a kind of failure.
type cause struct {
	text   string
	hint   hint.Hint // the next step; none if text says it
	passes bool      // the same request may succeed later
	kind   error     // a wider sentinel, or nil
}

func (c *cause) Error() string { return c.text }
func (c *cause) Unwrap() error { return c.kind }

// A lasting failure would come again, a passing one may not, and a special one is also of a wider
// kind.
func lasting(text string, h hint.Hint) error { return &cause{text: text, hint: h} }
func passing(text string) error              { return &cause{text: text, hint: hint.Again, passes: true} }
func special(kind error, text string, h hint.Hint) error {
	return &cause{text: text, hint: h, kind: kind}
}

// passingTexts are failures of net/http and crypto/tls without a type: the server closed a
// connection between two requests, or a byte of a record was wrong.
var passingTexts = []string{"server closed idle connection", "bad record MAC"}

// local are this machine's own refusals. The network isn't at fault then, and a repeat would be
// refused too.
var local = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EACCES, syscall.EPERM}

// temporary reports whether the cause of err may pass. Only a lookup or a connection that failed,
// broke, or took too long may.
func temporary(err error) bool {
	if c, ok := errors.AsType[*cause](err); ok {
		return c.passes
	}
	if slices.ContainsFunc(local, func(e error) bool { return errors.Is(err, e) }) {
		return false
	}
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout() || isA[*net.DNSError](err) ||
		isA[syscall.Errno](err) && !isA[*fs.PathError](err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || err != nil && slices.ContainsFunc(passingTexts,
		func(text string) bool { return strings.Contains(err.Error(), text) })
}

// neverBegun reports whether there was no connection, so the request wasn't even sent.
func neverBegun(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return isA[*net.DNSError](err) || errors.Is(err, errNoTunnel) ||
		ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// isA reports whether err is, or wraps, an error of type E.
func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// none is the next step if the text says it.
var none hint.Hint

// The sentinels are the kinds of failures. Test for them with errors.Is.
var (
	ErrNotFound         = lasting("no such repo, or it is private", hint.NoRepo)
	ErrRevisionNotFound = lasting("no such revision", hint.NoRevision)
	ErrEntryNotFound    = lasting("file not found in the repo", none)
	ErrUnauthorized     = lasting("the Hub refuses the token", hint.Unauthorized)
	ErrGated            = lasting("this repo is gated, and the Hub does not let you read it", hint.Gated)
	ErrForbidden        = lasting("not allowed", hint.Forbidden)
	ErrQuota            = lasting("storage quota reached", hint.Quota)
	ErrNamespace        = special(ErrForbidden, "no right to write in this namespace", hint.Namespace)
	ErrDisabled         = lasting("the Hub has disabled this repo", hint.Disabled)
	ErrCard             = lasting("the Hub refuses the model card", hint.HubCard)
	ErrTooMany          = lasting("the Hub refuses so many or so large files", hint.TooMany)
	ErrTooLarge         = lasting("file is larger than allowed here", none)
	ErrRateLimited      = passing("rate limit reached")
	ErrOffline          = lasting("offline mode is on (HF_HUB_OFFLINE)", hint.Offline)
	ErrChanged          = lasting("file changed on the hub", hint.Again)
	ErrCorrupt          = lasting("bytes don't match the published hash", hint.Corrupt)
	ErrArgument         = lasting("the caller asks for what can't be", none) // a range past the end
	ErrConflict         = lasting("branch moved", hint.BranchMoved)
	ErrMissingObject    = lasting("the hub doesn't have a file that the commit names", hint.Again)
	ErrUnsafePath       = lasting("unsafe file name", hint.ModelAlone)
	ErrNotHub           = lasting("the answer isn't from a hub", hint.NotHub)
	ErrTrustedPublisher = lasting("no token from trusted publishing", hint.Publisher)
	ErrEndpointParts    = errors.New("must not have a user, query, or fragment")
)

// Kinds that only words and hints tell apart.
var (
	errNoRoute      = lasting("this Hub may lack the route", hint.NoRoute)
	errOwnNamespace = special(ErrNamespace, "no right to write in this namespace", hint.ReadToken)
	errReadToken    = special(ErrForbidden, "the token is for reading", hint.ReadToken)
	errTooLong      = lasting("the request is larger than allowed there", hint.RequestSize)
	errProxy        = lasting("the proxy wants a login", hint.ProxyLogin)
	errBadProxy     = lasting("not the address of a proxy", hint.BadProxy)
	errLegal        = lasting("not available here, for legal reasons", hint.Legal)
	errStalled      = passing("connection stalled")
	errDiffers      = lasting("another client sees other files than were published", hint.Witness)
	errNoConnection = lasting("no connection", hint.Network) // from the start
)

// Failures on the way. Callers outside see the first three only if no repeat helped.
var (
	errExpired  = passing("signed link expired")
	errLagging  = passing("connection is far slower than the others")
	errBadRange = passing("server sent other bytes than asked for")
	errBusy     = passing("the hub is busy with another change") // our own change
	// ask for new links
	errStale = lasting("upload link refused", hint.StaleLinks)
	// instead of io.EOF, which readers take for the end of a file
	errNoAnswer = passing("connection closed without an answer")
	// so the request wasn't even sent
	errNoTunnel = passing("the proxy refuses")
	// the network isn't at fault
	errLocalBody = lasting("the file to send can't be read", none)
	errBadURL    = lasting("unreadable URL", none)
	errLinks     = lasting("the storage refuses its own links", hint.Again)
	errCut       = &cause{"the answer is cut off", hint.Again, true, io.ErrUnexpectedEOF}
	// a second try may reach the Hub
	errEmpty  = &cause{"the answer isn't from a hub: it's empty", hint.NotHub, true, ErrNotHub}
	errNoETag = special(ErrNotHub, "the storage's answer has no ETag", hint.NoETag)
	errPage   = &cause{"the answer isn't from a hub: it's a web page", hint.WebPage, true,
		ErrNotHub}
)
