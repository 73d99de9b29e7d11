package hub

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Hint gives the next step for the user, one sentence or two, or "" when there
// is none to give.
func Hint(err error) string {
	if errors.Is(err, ErrTrustedPublisher) {
		return "unset HF_OIDC_RESOURCE and set HF_TOKEN to an access token"
	}
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	switch {
	case errors.Is(e, ErrGated):
		return gatedHint(e)
	case errors.Is(e, ErrUnauthorized):
		return tokenHint(e)
	case errors.Is(e, ErrNotFound):
		return missingHint(e)
	case errors.Is(e, ErrForbidden):
		return forbiddenHint(e)
	}
	return plainHint(e)
}

func gatedHint(e *Error) string {
	page := e.Endpoint + "/" + e.Repo
	if e.TokenSource == "" {
		return fmt.Sprintf("open %s in a browser, accept the terms, then set HF_TOKEN to your access token", page)
	}
	return fmt.Sprintf("request access at %s in a browser; if you have it, the token from %s may lack the right to read gated repos",
		page, e.TokenSource)
}

func tokenHint(e *Error) string {
	if e.TokenSource == "" {
		return fmt.Sprintf("set HF_TOKEN to an access token, from %s/settings/tokens", e.Endpoint)
	}
	if strings.Contains(strings.ToLower(e.Message), "expired") {
		return fmt.Sprintf("the token from %s has expired; make a new one at %s/settings/tokens", e.TokenSource, e.Endpoint)
	}
	return fmt.Sprintf("the token from %s is wrong or expired; make a new one at %s/settings/tokens", e.TokenSource, e.Endpoint)
}

func missingHint(e *Error) string {
	if e.TokenSource == "" {
		return fmt.Sprintf("check the spelling of %q; if the repo is private, set HF_TOKEN", e.Repo)
	}
	return fmt.Sprintf("check the spelling of %q; if the repo is private, the owner of the token from %s needs access to it",
		e.Repo, e.TokenSource)
}

func forbiddenHint(e *Error) string {
	if e.TokenSource == "" {
		return "set HF_TOKEN to an access token that has this right"
	}
	return fmt.Sprintf("the token from %s needs write access to %s; see %s/settings/tokens", e.TokenSource, orDefault(e.Repo, "it"), e.Endpoint)
}

// plainHint covers the causes that depend on nothing but their kind.
func plainHint(e *Error) string {
	switch {
	case errors.Is(e, ErrDisabled):
		return "the hub's operators have disabled this repo; nothing can be done here"
	case errors.Is(e, ErrQuota):
		return fmt.Sprintf("free or buy storage at %s/settings/billing, or choose another target with --repo-id", e.Endpoint)
	case errors.Is(e, ErrRateLimited):
		return "run the same command again later; it goes on where it stopped"
	case errors.Is(e, ErrRevisionNotFound):
		return "check the revision after @: a branch, a tag or a commit"
	case errors.Is(e, ErrOffline):
		return "unset HF_HUB_OFFLINE to use the network"
	case errors.Is(e, ErrChanged):
		return "run the same command again; it reads the file anew"
	case errors.Is(e, ErrConflict):
		return fmt.Sprintf("others commit to %s at the same time; run the same command again, it goes on where it stopped", orDefault(e.Repo, "it"))
	case errors.Is(e, ErrMissingObject):
		return "the hub does not hold a file that it took before; run the same command again, it sends that file anew"
	case errors.Is(e, ErrCorrupt):
		return "run the same command again; if it fails the same way, the file is damaged in the hub's store, or this machine's memory or disk is at fault"
	case errors.Is(e, ErrNotHub):
		return "check HF_ENDPOINT and the proxy settings"
	case errors.Is(e, ErrUnknownOutcome):
		return fmt.Sprintf("run the same command again; it goes on with the pull request if there is one at %s/%s/discussions", e.Endpoint, e.Repo)
	case errors.Is(e, ErrIgnored):
		return "remove the pattern from the .gitignore of the target repo"
	case e.Temporary() || e.Status >= http.StatusInternalServerError:
		return "the network or the hub is in trouble; run the same command again, it goes on where it stopped"
	}
	return ""
}
