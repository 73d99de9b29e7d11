package wire

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
)

// hints are the next steps by cause; the first cause that fits counts. withToken replaces step
// where a token was sent. Words in braces are filled in.
var hints = []struct {
	cause           error
	step, withToken string
}{
	{ErrGated, "open {endpoint}/{repo} in a browser, accept the terms, then {login}",
		"request access at {endpoint}/{repo} in a browser; if you have it, the token from {token} may lack the right to read " +
			"gated repos"},
	{ErrUnauthorized, "{login}, from {endpoint}/settings/tokens",
		"the token from {token} {fault}; make a new one at {endpoint}/settings/tokens"},
	{ErrNotFound, "check the spelling of {name}; if the repo is private, {login}",
		"check the spelling of {name}; if the repo is private, the owner of the token from {token} needs access to it"},
	{ErrForbidden, "{login} that has this right",
		"give the token from {token} {right} at {endpoint}/settings/tokens, or set another token"},
	{ErrDisabled, "the hub's operators have disabled this repo; nothing can be done here", ""},
	{ErrQuota,
		"free or buy storage at {endpoint}/settings/billing, or choose another target with --repo-id", ""},
	{ErrRateLimited, "run the same command again later; it goes on where it stopped", ""},
	{ErrRevisionNotFound, "check the revision after @: a branch, a tag or a commit", ""},
	{ErrOffline, "unset HF_HUB_OFFLINE to use the network", ""},
	{ErrChanged, "run the same command again; it reads the file anew", ""},
	{ErrConflict,
		"others commit to {it} at the same time; run the same command again, it goes on where it stopped", ""},
	{ErrMissingObject,
		"the hub does not hold a file that it took before; run the same command again, it sends that file anew", ""},
	{ErrCorrupt,
		"run the same command again; if it fails the same way, the file is damaged in the hub's store, " +
			"or this machine's memory or disk is at fault", ""},
	{ErrNotHub, "check HF_ENDPOINT and the proxy settings", ""},
	{ErrNoRoute,
		"{endpoint} cannot do this: if it is a mirror that only reads, set DF11_PUSH_ENDPOINT to the Hub to publish to; else " +
			"check HF_ENDPOINT", ""},
	{ErrInsists,
		"it may refuse what was asked, in its own words; if they tell of an outage, run the same command again later", ""},
	{ErrExpired,
		"the hub's storage refuses even fresh links: check this machine's clock, and whether a proxy changes URLs; " +
			"else run the same command again later, it goes on where it stopped", ""},
	{ErrStale,
		"the hub's storage did not take the file, even with fresh links, which live for minutes: it may be too large for " +
			"a slow line; run the same command again, it sends that file anew", ""},
	{ErrBadRange, "a proxy or cache in between spoils what the hub sends; check the proxy settings",
		""},
	{errNoConnection,
		"check the network of this machine, and HF_ENDPOINT, without which the Hub is " +
			PublicEndpoint +
			"; behind a proxy, set HTTPS_PROXY; with HF_HUB_OFFLINE=1 only what the shared cache holds is read", ""},
	{ErrBusy,
		"another change of yours is under way on the hub; run the same command again in a minute",
		""},
}

// Hint gives the next step for the user, one sentence or two, or "" when there is none to give.
func Hint(err error) string {
	if errors.Is(err, ErrTrustedPublisher) {
		return "allow the job id-token: write (GitHub), or set HF_OIDC_ID_TOKEN to an identity for this hub; the settings of what " +
			"HF_OIDC_RESOURCE names must list this workflow as a trusted publisher. Or unset HF_OIDC_RESOURCE and set HF_TOKEN"
	}
	if h := localHint(err); h != "" {
		return h
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	if errors.Is(e, ErrNoRoute) && strings.Contains(e.URL, "%2F") {
		return "choose a name without a slash, which this Hub may not take"
	}
	for _, h := range hints {
		if errors.Is(e, h.cause) {
			if e.TokenSource != "" && h.withToken != "" {
				return e.fill(h.withToken)
			}
			return e.fill(h.step)
		}
	}
	if IsA[tls.RecordHeaderError](err) {
		return "there is no TLS at the other end: check HF_ENDPOINT; is it http:// and not https://?"
	}
	if e.GaveUp() || e.Temporary() || e.Status >= http.StatusInternalServerError {
		return "the network or the hub is in trouble; run the same command again, it goes on where it stopped"
	}
	return ""
}

// fill replaces the words in braces.
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

// localHint is the next step after a refusal by the system.
func localHint(err error) string {
	switch localFault(err) {
	case syscall.EMFILE:
		return "this process may open too few files at once: allow more with `ulimit -n 1024`, then run the same command again"
	case syscall.ENFILE:
		return "all programs of this machine together have too many files open: close some, or raise the system's limit"
	case syscall.EACCES, syscall.EPERM:
		if IsA[*net.OpError](err) {
			return "this machine does not allow the connection: check the rules of its firewall"
		}
	}
	return ""
}
