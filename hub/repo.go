package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/names"
)

// NeedToken is ErrUnauthorized for a client without token. It asks nobody.
func (c *Client) NeedToken() error {
	if !c.t.Opt.HasToken() {
		return c.t.Errorf("log in", wire.ErrUnauthorized, "no token is set")
	}
	return nil
}

// WhoAmI gives the name of the token's owner: "ns" of ns/name. The hub limits this question
// tightly, so a client asks it once and remembers the answer.
func (c *Client) WhoAmI(ctx context.Context) (string, error) {
	if err := c.NeedToken(); err != nil {
		return "", err
	}
	if user := c.user.Load(); user != nil {
		return *user, nil
	}
	var doc struct{ Name string }
	if _, err := c.t.Call(ctx,
		wire.Get("read the token's owner", "", c.Endpoint()+"/api/whoami-v2"), &doc); err != nil {
		return "", err
	}
	c.user.Store(&doc.Name)
	return doc.Name, nil
}

// CheckAccess asks whether the token may write to a repo that is known to be there, before anything
// is uploaded. A hub that has no such route lets the commit decide, and so does this.
func (c *Client) CheckAccess(ctx context.Context, repo string) error {
	r := c.t.RepoGet("write to "+repo, repo, "/auth-check/write")
	r.Needs = "write access to " + repo
	_, err := c.t.Call(ctx, r, nil)
	return c.unlessMissing(err)
}

// unlessMissing passes over the error of a hub that lacks a route which only brings bad news
// forward, whatever its X-Error-Code: some proxies call every unknown route a missing repo.
func (c *Client) unlessMissing(err error) error {
	e := wire.ErrorOf(err)
	if errors.Is(err, wire.ErrNoRoute) || errors.Is(err, wire.ErrNotFound) &&
		e.Status == http.StatusNotFound {
		c.t.Opt.Log.Info("the hub lacks a route, the commit will tell", "op", e.Op, "status",
			e.Status)
		return nil
	}
	return err
}

// ValidateCard lets the hub check a model card before anything is uploaded: warnings are only
// shown, an error (wrapping ErrInvalidCard) would refuse the commit. A hub that has no such route
// finds nothing.
func (c *Client) ValidateCard(ctx context.Context, readme []byte) (warnings []string, err error) {
	type remark struct {
		Message string `json:"message"`
	}
	var answer struct{ Errors, Warnings []remark }
	r := wire.Send("validate the model card", "", http.MethodPost,
		c.Endpoint()+"/api/validate-yaml",
		map[string]string{"content": string(readme), "repoType": "model"})
	_, err = c.t.Call(ctx, r, &answer)
	// not of the login before
	if e := wire.ErrorOf(err); e.Status == http.StatusBadRequest &&
		e.Err == nil {
		return nil, e.Under(wire.ErrInvalidCard)
	}
	if err != nil {
		return nil, c.unlessMissing(err)
	}
	for _, w := range answer.Warnings {
		warnings = append(warnings, wire.OneLine(w.Message))
	}
	for _, e := range answer.Errors {
		return warnings, c.t.Errorf(r.Op, wire.ErrInvalidCard, "%s", e.Message)
	}
	return warnings, nil
}

// CreateRepo makes a model repo; created is false if it exists, whose visibility then stays as it
// is. private nil leaves the visibility to the namespace's default. A repo that was asked to be
// private and came out public is set private before the call returns.
func (c *Client) CreateRepo(ctx context.Context, repo string,
	private *bool) (created bool, err error) {
	if err := names.CheckNewRepo(repo); err != nil {
		return false, err
	}
	namespace, name, _ := strings.Cut(repo, "/")
	body := map[string]any{"name": name, "organization": namespace, "type": "model"}
	if private != nil {
		body["visibility"] = map[bool]string{true: "private", false: "public"}[*private]
	}
	r := wire.Send("create repo "+repo, repo, http.MethodPost, c.Endpoint()+"/api/repos/create",
		body)
	r.Needs = fmt.Sprintf("write access to %q", namespace)
	err = c.t.Retry(ctx, r, func(ctx context.Context) error {
		_, err := c.t.Once(ctx, r, nil)
		e := wire.ErrorOf(err)
		if e.Status == http.StatusConflict && strings.Contains(e.Message,
			"conflicting operation") {
			return e.Under(wire.ErrBusy) // the same user creates another repo just now
		}
		return err
	})
	if e := wire.ErrorOf(err); e.Status == http.StatusConflict &&
		!errors.Is(err, wire.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if private == nil || !*private {
		return true, nil
	}
	info, err := c.Info(ctx, repo, "")
	if err != nil || info.Private {
		return true, err
	}
	return true, c.makePrivate(ctx, repo) // the hub does not know the member visibility
}

// makePrivate hides a repo, and checks that the hub did it.
func (c *Client) makePrivate(ctx context.Context, repo string) error {
	r := c.t.RepoSend("set visibility of "+repo, repo, http.MethodPut, "/settings",
		map[string]string{"visibility": "private"})
	if _, err := c.t.Call(ctx, r, nil); err != nil {
		return err
	}
	info, err := c.Info(ctx, repo, "")
	if err == nil && !info.Private {
		return c.t.Errorf(r.Op, wire.ErrForbidden, "the hub did not make it private")
	}
	return err
}

// CreateBranch makes a branch that starts at a commit, or at main's head if start is empty. A
// branch that exists is success, and stays where it is.
func (c *Client) CreateBranch(ctx context.Context, repo, branch, start string) error {
	body := map[string]string{}
	if start != "" {
		body["startingPoint"] = start
	}
	r := c.t.RepoSend("create branch "+branch+" of "+repo, repo, http.MethodPost,
		wire.RevPath("branch", branch), body)
	return c.t.Retry(ctx, r, func(ctx context.Context) error {
		_, err := c.t.Once(ctx, r, nil)
		e := wire.ErrorOf(err)
		if e.Status != http.StatusConflict {
			return err
		}
		there, err := c.hasBranch(ctx, repo, branch)
		if err == nil && !there {
			return e.Under(wire.ErrBusy) // the hub does something else with the repo just now
		}
		return err
	})
}

// DeleteBranch removes a branch; one that does not exist is success.
func (c *Client) DeleteBranch(ctx context.Context, repo, branch string) error {
	r := c.t.RepoGet("delete branch "+branch+" of "+repo, repo, wire.RevPath("branch", branch))
	r.Method, r.Follow = http.MethodDelete, wire.FollowSame
	_, err := c.t.Call(ctx, r, nil)
	if e := wire.ErrorOf(err); e.Status == http.StatusNotFound {
		// The answer to an earlier try may have been lost, and not every 404 says what is missing.
		if there, listErr := c.hasBranch(ctx, repo, branch); listErr == nil && !there {
			return nil
		}
	}
	return err
}

// hasBranch looks whether a branch is there.
func (c *Client) hasBranch(ctx context.Context, repo, branch string) (bool, error) {
	names, err := c.Branches(ctx, repo)
	return slices.Contains(names, branch), err
}
