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

// A cause is a kind of failure.
type cause struct {
	text   string
	hint   string // the next step; words in braces are filled in; "" if text says it
	passes bool   // the same request may succeed later
	kind   error  // a wider sentinel, or nil
}

func (c *cause) Error() string { return c.text }
func (c *cause) Unwrap() error { return c.kind }

func lasting(text, hint string) error { return &cause{text: text, hint: hint} }
func passing(text string) error       { return &cause{text: text, hint: again, passes: true} }

// passingTexts are failures of net/http and crypto/tls without a type: the server closed a
// connection between two requests, or a byte of a record was wrong.
var passingTexts = []string{"server closed idle connection", "bad record MAC"}

// local are this machine's own refusals. The network isn't at fault then, and a repeat would be
// refused too.
var local = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EACCES, syscall.EPERM}

// Temporary reports whether the cause of err may pass. Only a lookup or a connection that failed,
// broke, or took too long may.
func Temporary(err error) bool {
	if c, ok := errors.AsType[*cause](err); ok {
		return c.passes
	}
	if slices.ContainsFunc(local, func(e error) bool { return errors.Is(err, e) }) {
		return false
	}
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout() || IsA[*net.DNSError](err) ||
		IsA[syscall.Errno](err) && !IsA[*fs.PathError](err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || err != nil && slices.ContainsFunc(passingTexts,
		func(text string) bool { return strings.Contains(err.Error(), text) })
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

// Next steps. Words in braces are filled in.
const (
	again   = "run the same command again; it continues where it stopped"
	network = "check your network; behind a proxy, set HTTPS_PROXY=http://user:password@host:port; " +
		"for a mirror, set HF_ENDPOINT"
	settings = "check HF_ENDPOINT and your proxy settings"
)

// The sentinels are the kinds of failures. Test for them with errors.Is.
var (
	ErrNotFound = lasting("no such repo, or it is private",
		`check the spelling of "{repo}"; if the repo is private, {login}`)
	ErrRevisionNotFound = lasting("no such revision",
		"check the revision after @: it can be a branch, a tag, or a commit")
	ErrNoRoute = lasting("this Hub may lack the route",
		"check HF_ENDPOINT, because {endpoint} can't do this; if it's a read-only mirror, set "+
			"DF11_PUSH_ENDPOINT to the Hub to publish to")
	ErrEntryNotFound = lasting("file not found in the repo", "")
	ErrUnauthorized  = lasting("the Hub refuses the token", "{login}, from {endpoint}/settings/tokens")
	ErrGated         = lasting("this repo is gated, and the Hub does not let you read it",
		"open {endpoint}/{repo} in a browser, accept the terms, then {login}")
	ErrForbidden = lasting("not allowed", "{login} that has this right")
	ErrQuota     = lasting("storage quota reached",
		"free or buy storage at {endpoint}/settings/billing, or choose another target with --repo-id")
	ErrNamespace = &cause{"no right to write in this namespace",
		"choose your own namespace with --repo-id, or ask an admin of the organization for the role " +
			"write", false, ErrForbidden}
	ErrReadToken = &cause{"the token is for reading",
		"make a token for writing at {endpoint}/settings/tokens, and set HF_TOKEN to it", false,
		ErrForbidden}
	ErrDisabled = lasting("the Hub has disabled this repo",
		"choose another source or target; {endpoint}/{repo} may say why")
	ErrCard = lasting("the Hub refuses the model card",
		"correct the value that it names in the source's README.md; to change the README.md of a repo "+
			"on the Hub, download the repo and convert the folder")
	ErrTooMany = lasting("the Hub refuses so many or so large files",
		"choose another layout with --layout; plan shows the number and size of the files")
	ErrRateLimited = passing("rate limit reached")
	ErrOffline     = lasting("offline mode is on (HF_HUB_OFFLINE)",
		"unset HF_HUB_OFFLINE to use the network")
	ErrChanged = lasting("file changed on the hub", again)
	ErrCorrupt = lasting("bytes don't match the published hash",
		"run the same command again; if it fails again, the file is damaged in the hub's store, or "+
			"this machine's memory or disk is at fault")
	ErrTooLarge = lasting("file is larger than allowed here", "")
	errTooLong  = lasting("the request is larger than allowed there",
		"raise the request limit of the server, or of a proxy in between (nginx: client_max_body_size)")
	errProxy = lasting("the proxy wants a login",
		"set HTTP_PROXY and HTTPS_PROXY to http://user:password@host:port")
	errLegal = lasting("not available here, for legal reasons",
		"open {endpoint}/{repo} in a browser: it may say more")
	ErrConflict = lasting("branch moved",
		"run the same command again; someone else commits to {repo} at the same time")
	ErrMissingObject = lasting("the hub doesn't have a file that the commit names", again)
	ErrUnsafePath    = lasting("unsafe file name", "")
	ErrNotHub        = lasting("the answer isn't from a hub", settings)
	ErrStalled       = passing("connection stalled")

	ErrTrustedPublisher = lasting("no token from trusted publishing",
		"allow the job id-token: write (GitHub), or set HF_OIDC_ID_TOKEN to an identity for this hub, "+
			"and add this workflow to the trusted publishers of the repo or user in HF_OIDC_RESOURCE. "+
			"Or unset HF_OIDC_RESOURCE and set HF_TOKEN")
	errNoConnection = lasting("no connection", network) // from the start
)

// Failures on the way. Callers of the API see the first three only if no repeat helped.
var (
	ErrExpired  = passing("signed link expired")
	ErrLagging  = passing("connection is far slower than the others")
	ErrBadRange = passing("server sent other bytes than asked for")
	ErrBusy     = passing("the hub is busy with another change") // our own change
	// ask for new links
	ErrStale = lasting("upload link refused", "run the same command again, on a faster network if "+
		"you can: the file may take longer than the storage's links last, which is minutes")
	// instead of io.EOF, which readers take for the end of a file
	errNoAnswer = passing("connection closed without an answer")
	// the network isn't at fault
	errLocalBody = lasting("the file to send can't be read", "")
	ErrBadURL    = lasting("unreadable URL", "")
	errLinks     = lasting("the storage refuses its own links", again)
	// a second try may reach the Hub
	errEmpty = &cause{"the answer isn't from a hub: it's empty", settings, true, ErrNotHub}
	errPage  = &cause{"the answer isn't from a hub: it's a web page",
		"log in to your network, or check HF_ENDPOINT and your proxy settings: a login page, a " +
			"firewall, or a proxy answered instead of the hub", true, ErrNotHub}
)
