package wire

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// hints are the next steps by cause. The first cause that fits counts. withToken replaces step if a
// token was sent. Words in braces are filled in.
var hints = []struct {
	cause           error
	step, withToken string
}{
	{ErrGated, "open {endpoint}/{repo} in a browser, accept the terms, then {login}",
		"request access at {endpoint}/{repo} in a browser; if you have it, give the token from {token} the right " +
			"to read gated repos"},
	{ErrUnauthorized, "{login}, from {endpoint}/settings/tokens",
		"the token from {token} {fault}; make a new one at {endpoint}/settings/tokens"},
	{ErrNotFound, "check the spelling of {name}; if the repo is private, {login}",
		"check the spelling of {name}; if the repo is private, the owner of the token from {token} needs access to it"},
	{ErrForbidden, "{login} that has this right",
		"give the token from {token} {right} at {endpoint}/settings/tokens, or use another token"},
	{ErrDisabled, "ask the hub's operators: they disabled this repo", ""},
	{ErrQuota,
		"free or buy storage at {endpoint}/settings/billing, or choose another target with --repo-id", ""},
	{ErrRateLimited, "run the same command again later; it continues where it stopped", ""},
	{ErrRevisionNotFound, "check the revision after @: it can be a branch, a tag, or a commit", ""},
	{ErrOffline, "unset HF_HUB_OFFLINE to use the network", ""},
	{ErrChanged, "run the same command again; it reads the file again", ""},
	{ErrConflict,
		"run the same command again; someone else commits to {it} at the same time", ""},
	{ErrMissingObject,
		"run the same command again; the hub lost a file, which is then sent again", ""},
	{ErrCorrupt,
		"run the same command again; if it fails again, the file is damaged in the hub's store, or this " +
			"machine's memory or disk is at fault", ""},
	{errPage, "log in to your network, or check HF_ENDPOINT and your proxy settings: a login page, a firewall, " +
		"or a proxy answered instead of the hub", ""},
	{ErrNotHub, "check HF_ENDPOINT and your proxy settings", ""},
	{errProxy, "if the proxy wants a login, set HTTPS_PROXY=http://user:password@host:port; otherwise ask its operators", ""},
	{ErrNoRoute,
		"check HF_ENDPOINT, because {endpoint} can't do this; if it's a read-only mirror, set DF11_PUSH_ENDPOINT " +
			"to the Hub to publish to", ""},
	{ErrInsists,
		"read the Hub's message: if it reports an outage, run the same command again later", ""},
	{ErrExpired,
		"check this machine's clock, and whether a proxy changes URLs: the hub's storage refuses even new links; " +
			"otherwise run the same command again later", ""},
	{ErrStale,
		"run the same command again, on a faster network if you can: the file may take longer than the storage's " +
			"links last, which is minutes", ""},
	{ErrBadRange, "check your proxy settings: a proxy or cache changes what the hub sends", ""},
	{errNoConnection,
		"check your network; behind a proxy, set HTTPS_PROXY; for a mirror, set HF_ENDPOINT", ""},
	{ErrBusy,
		"run the same command again in a minute, when your other change on the hub is done", ""},
}

// Hint returns the next step for the user in one or two sentences, or "" if there is none.
func Hint(err error) string {
	if errors.Is(err, ErrTrustedPublisher) {
		return "allow the job id-token: write (GitHub), or set HF_OIDC_ID_TOKEN to an identity for this hub, and add this workflow " +
			"to the trusted publishers of the repo or user in HF_OIDC_RESOURCE. Or unset HF_OIDC_RESOURCE and set HF_TOKEN"
	}
	if h := localHint(err); h != "" {
		return h
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	if strings.HasPrefix(e.URL, "http:") && (errors.Is(e, errNoAnswer) ||
		strings.Contains(e.Error(), "malformed HTTP response")) {
		return "check HF_ENDPOINT: is it https:// and not http://?"
	}
	if errors.Is(e, ErrNoRoute) && strings.Contains(e.URL, "%2F") {
		return "choose a name without a slash: this Hub may not accept slashes"
	}
	for _, h := range hints {
		if errors.Is(e, h.cause) {
			if e.TokenSource != "" && h.withToken != "" {
				return e.fill(h.withToken)
			}
			return e.fill(h.step)
		}
	}
	switch {
	case runtime.GOOS == "js": // a browser says nothing of TLS
	case IsA[tls.RecordHeaderError](err):
		return "check HF_ENDPOINT: is it http:// and not https://? The other end doesn't speak TLS"
	case IsA[x509.UnknownAuthorityError](err):
		return "if your network's proxy signs certificates, set SSL_CERT_FILE to the file with its own, often the one in " +
			"REQUESTS_CA_BUNDLE; on macOS and Windows, add it to the system's certificates"
	case e.Status == http.StatusRequestEntityTooLarge:
		return "raise the request limit of the server, or of a proxy in between (nginx: client_max_body_size)"
	}
	if e.GaveUp() || e.Temporary() || e.Status >= http.StatusInternalServerError {
		return "run the same command again; it continues where it stopped. The network or the hub has a problem"
	}
	return ""
}

// fill fills in the words in braces.
func (e *Error) fill(text string) string {
	fault := "is wrong or expired"
	if strings.Contains(strings.ToLower(e.Message), "expired") {
		fault = "has expired"
	}
	return strings.NewReplacer("{endpoint}", e.Endpoint, "{repo}", e.Repo, "{name}",
		strconv.Quote(e.Repo),
		"{it}", cmp.Or(e.Repo, "it"), "{token}", e.TokenSource, "{fault}", fault, "{right}",
		e.needs,
		"{login}", cmp.Or(e.login, "set HF_TOKEN to an access token")).Replace(text)
}

// localHint returns the next step if this machine refused.
func localHint(err error) string {
	switch localFault(err) {
	case syscall.EMFILE:
		return "allow more open files with `ulimit -n 1024`, then run the same command again"
	case syscall.ENFILE:
		return "close some programs, or raise the system's limit: too many files are open on this machine"
	case syscall.EACCES, syscall.EPERM:
		if IsA[*net.OpError](err) {
			return "check this machine's firewall rules: they don't allow the connection"
		}
	}
	return ""
}
