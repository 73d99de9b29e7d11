package hub

import (
	"cmp"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// Hint returns the next step for the user in one or two sentences, or "" if there is none.
func Hint(err error) string { return hint.Of(err).String() }

// withToken are the next steps, by cause, if a token was sent.
var withToken = map[error]hint.Hint{ErrGated: hint.GatedToken, ErrUnauthorized: hint.TokenRefused,
	ErrNotFound: hint.NoRepoToken, ErrForbidden: hint.ForbiddenToken}

// atVariable are the next steps, by cause, if a variable names the hub: it may be wrong.
var atVariable = map[hint.Hint]hint.Hint{hint.Network: hint.NetworkTo, hint.NotHub: hint.NotHubAt,
	hint.WebPage: hint.WebPageAt, hint.AnyScheme: hint.Scheme}

// Culprit says what a failure is about, if it says nothing about the repo that was asked for: "the
// network", "the Hub", or "the token". Otherwise it returns "".
func Culprit(err error) string {
	e := errorOf(err)
	outage := e.GaveUp() && e.Status >= http.StatusInternalServerError
	switch {
	case errors.Is(err, ErrUnauthorized) && e.sent != "", errors.Is(err, ErrTrustedPublisher),
		errors.Is(err, errReadToken):
		return "the token"
	case errors.Is(err, errPage), errors.Is(err, errEmpty), errors.Is(err, errNoConnection),
		errors.Is(err, errProxy), errors.Is(err, errLinks),
		e.GaveUp() && e.Status == 0 && temporary(e.Err):
		return "the network"
	case errors.Is(err, ErrRateLimited),
		// hfd and KohakuHub refuse one repo with 500 and a reason
		outage && (e.Status != http.StatusInternalServerError || e.Message == ""):
		return "the Hub"
	}
	return ""
}

// Away returns how long what Culprit names had been failing when err was returned: waiting for its
// end needn't last that much longer.
func Away(err error) time.Duration { return errorOf(err).away }

// Hint returns the next step for the user.
func (c *cause) Hint() hint.Hint { return (&Error{Err: c}).hint() }

// hint returns the next step for the user, or none.
func (e *Error) hint() hint.Hint {
	h := e.step()
	if e.variable != "" {
		h = cmp.Or(atVariable[h], h)
		away := e.Status == 0 || e.Status >= http.StatusBadGateway
		if h == hint.Again && away && e.GaveUp() && strings.HasPrefix(e.URL, e.Endpoint+"/") {
			h = hint.AgainAt // one of two hubs may be away
		}
	}
	variable, proxy := proxyOf(e)
	switch h {
	case hint.Network, hint.NetworkTo:
		if proxy != "" {
			h = hint.NetworkProxy.With("variable", variable, "proxy", proxy)
		}
	case hint.ProxyLogin:
		h = h.With("variable", cmp.Or(variable, "HTTPS_PROXY"))
	}
	if e.Repo == "" { // of an error that no request has returned
		h = h.With("endpoint}/{repo", "the repo's page")
	}
	return h.With("endpoint", cmp.Or(e.Endpoint, publicEndpoint), "repo", cmp.Or(e.Repo, "the repo"),
		"token", e.TokenSource, "op", cmp.Or(e.Op, "do that"),
		"login", cmp.Or(e.login, hint.Login.String()),
		"variable", cmp.Or(e.variable, "HF_ENDPOINT"))
}

// step returns the next step, with the facts that [Error.hint] fills in.
func (e *Error) step() hint.Hint {
	if e.advice != none {
		return e.advice
	}
	if c, ok := errors.AsType[*cause](e.Err); ok {
		switch {
		case e.TokenSource != "" && withToken[c] != none:
			return withToken[c]
		case errors.Is(c, ErrRevisionNotFound) && path.Base(e.URL) == "main":
			// no one asked for a revision: a repo without a commit, or one that is just being made
			return hint.NoMain
		case c == errPage && e.lane.isStorage(): // the endpoint isn't at fault
			return hint.WebPage.With("endpoint", e.lane.host)
		}
		return c.hint
	}
	// a browser says nothing of TLS
	if runtime.GOOS != "js" && e.Err != nil {
		wrong, _ := errors.AsType[x509.CertificateInvalidError](e.Err)
		switch {
		case isA[x509.UnknownAuthorityError](e.Err):
			return hint.Certificate
		case isA[x509.HostnameError](e.Err):
			return hint.NotHub
		case wrong.Cert != nil && wrong.Reason == x509.Expired:
			return hint.CertificateTime
		}
	}
	switch text := e.Error(); {
	case e.GaveUp() || e.Temporary() || e.Status >= http.StatusInternalServerError:
		return hint.Again
	case strings.Contains(text, noTLS), strings.Contains(text, noHTTP):
		return hint.AnyScheme
	case e.Status == http.StatusBadRequest, e.Status == http.StatusUnprocessableEntity:
		return hint.Report
	}
	return none
}

// proxyOf returns the proxy of the environment that a failed request went through, without its
// password, and the variable that names it, or "".
func proxyOf(e *Error) (variable, proxy string) {
	op, ok := errors.AsType[*net.OpError](e.Err)
	if (!ok || op.Op != "proxyconnect") && !errors.Is(e.Err, errNoTunnel) && !errors.Is(e.Err, errProxy) {
		return "", ""
	}
	scheme, _, _ := strings.Cut(e.URL, ":")
	name, value := proxyVariable(scheme)
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		return name, (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	}
	return "", ""
}

// proxyVariable returns the variable that says which proxy requests of a scheme go through, and its
// value, which may hold a password. ALL_PROXY is read as curl does, by a program that sets the
// others to its value.
func proxyVariable(scheme string) (name, value string) {
	upper := strings.ToUpper(scheme) + "_PROXY"
	name = upper
	if value = os.Getenv(name); value == "" {
		name = strings.ToLower(upper)
		value = os.Getenv(name)
	}
	for _, all := range []string{"ALL_PROXY", "all_proxy"} {
		if value != "" && os.Getenv(all) == value {
			name = all
		}
	}
	return name, value
}
