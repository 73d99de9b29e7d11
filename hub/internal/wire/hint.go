package wire

import (
	"cmp"
	"crypto/x509"
	"errors"
	"net/http"
	"path"
	"runtime"
	"strings"
	"time"
)

// withToken are the next steps, by cause, if a token was sent.
var withToken = map[error]string{
	ErrGated: "request access at {endpoint}/{repo} in a browser; if you have it, give the token from " +
		"{token} the right to read gated repos",
	ErrUnauthorized: "the token from {token} is wrong or expired; make a new one at " +
		"{endpoint}/settings/tokens",
	ErrNotFound: `check the spelling of "{repo}"; if the repo is private, the owner of the token from ` +
		"{token} needs access to it",
	ErrForbidden: "give the token from {token} the right to {op} at {endpoint}/settings/tokens, or use " +
		"another token",
}

// Culprit says what a failed request is about, if it says nothing about the repo that was asked
// for: "the network", "the Hub", or "the token". Otherwise it returns "".
func Culprit(err error) string {
	e := ErrorOf(err)
	outage := e.GaveUp() && e.Status >= http.StatusInternalServerError
	switch {
	case errors.Is(err, ErrUnauthorized) && e.sent != "", errors.Is(err, ErrTrustedPublisher),
		errors.Is(err, ErrReadToken):
		return "the token"
	case errors.Is(err, errPage), errors.Is(err, errEmpty), errors.Is(err, errNoConnection),
		errors.Is(err, errProxy), errors.Is(err, errLinks),
		e.GaveUp() && e.Status == 0 && Temporary(e.Err):
		return "the network"
	case errors.Is(err, ErrRateLimited),
		// some hubs refuse one repo with 500 and a reason
		outage && (e.Status != http.StatusInternalServerError || e.Message == ""):
		return "the Hub"
	}
	return ""
}

// Away returns how long what Culprit names had been failing when err was returned, as far as the
// requests that led to it know: callers that wait for its end needn't wait for that time again.
func Away(err error) time.Duration { return ErrorOf(err).away }

// Hint returns the next step for the user in one or two sentences, or "" if there is none.
func Hint(err error) string {
	e := ErrorOf(err)
	if e.advice != "" {
		return e.advice
	}
	if c, ok := errors.AsType[*cause](err); ok {
		step := c.hint
		if errors.Is(err, ErrRevisionNotFound) && path.Base(e.URL) == "main" {
			// no one asked for a revision: a repo without a commit, or one that is just being made
			step = "run the same command again if {repo} was just created; otherwise it's empty"
		}
		if e.TokenSource != "" {
			step = cmp.Or(withToken[c], step)
		}
		return strings.NewReplacer("{endpoint}", e.Endpoint, "{repo}", e.Repo, "{token}",
			e.TokenSource, "{op}", e.Op,
			"{login}", cmp.Or(e.login,
				"log in with hf auth login, or set HF_TOKEN to an access token")).Replace(step)
	}
	// a browser says nothing of TLS
	if runtime.GOOS != "js" && IsA[x509.UnknownAuthorityError](err) {
		return "if your network's proxy signs certificates, set SSL_CERT_FILE to the file with its " +
			"own, often the one in REQUESTS_CA_BUNDLE; on macOS and Windows, add it to the system's " +
			"certificates"
	}
	switch text := err.Error(); {
	case e.GaveUp() || e.Temporary() || e.Status >= http.StatusInternalServerError:
		return again
	case strings.Contains(text, "not look like a TLS handshake"),
		strings.Contains(text, "malformed HTTP response"):
		return "check HF_ENDPOINT: http:// and https:// may be mixed up"
	case e.Status == http.StatusBadRequest, e.Status == http.StatusUnprocessableEntity:
		return "report this with the output of -v: the Hub can't take what the program sent"
	}
	return ""
}
