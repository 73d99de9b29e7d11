package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/names"
)

// NeedToken returns ErrUnauthorized if the client has no token. It makes no request.
func (c *Client) NeedToken() error {
	if !c.t.Opt.HasToken() {
		return c.t.Errorf("log in", wire.ErrUnauthorized, "no token is set")
	}
	return nil
}

// WhoAmI returns the name of the token's owner: "ns" of ns/name. The hub limits this question
// tightly, so the client asks once and remembers the answer.
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

// Quantized returns a few repos whose names contain search and whose cards say that they hold base
// in another form. Anyone can write that into a card.
func (c *Client) Quantized(ctx context.Context, base, search string) (ids []string, err error) {
	q := url.Values{"filter": {"base_model:quantized:" + base}, "search": {search}, "limit": {"5"}}
	var docs []struct{ ID string }
	_, err = c.t.Call(ctx, wire.Get("look for other forms of "+base, "",
		c.Endpoint()+"/api/models?"+q.Encode()), &docs)
	for _, d := range docs {
		if names.IsRepo(d.ID) {
			ids = append(ids, d.ID)
		}
	}
	return ids, err
}

// CheckAccess checks that the token may write to an existing repo, before anything is uploaded. If
// the hub has no route for that, it asks how to upload a card.
func (c *Client) CheckAccess(ctx context.Context, repo string) error {
	r := c.t.RepoGet("write to "+repo, repo, "/auth-check/write")
	r.Needs = "write access to " + repo
	_, err := c.t.Call(ctx, r, nil)
	if err == nil || unlessMissing(c.t, err) != nil {
		return err
	}
	card := Blob{Path: names.Card, Reader: strings.NewReader("")}
	return unlessMissing(c.t, preupload(ctx, []*upload{{Client: c, repo: repo, rev: "main", Blob: card}}))
}

// unlessMissing ignores the error of a hub without a route that only reports bad news early. It
// ignores the X-Error-Code, because some proxies call every unknown route a missing repo.
func unlessMissing(t *wire.Transport, err error) error {
	e := wire.ErrorOf(err)
	if errors.Is(err, wire.ErrNoRoute) || errors.Is(err, wire.ErrNotFound) &&
		e.Status == http.StatusNotFound {
		t.Opt.Log.Info("the hub lacks a route; the commit will show", "op", e.Op, "status",
			e.Status)
		return nil
	}
	return err
}

// ValidateCard lets the hub check a model card before anything is uploaded. Warnings are only
// shown. An error, which wraps ErrInvalidCard, would refuse the commit. A hub without this route
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
	// not from the login before
	if e := wire.ErrorOf(err); e.Status == http.StatusBadRequest &&
		e.Err == nil {
		return nil, e.Under(wire.ErrInvalidCard)
	}
	if err != nil {
		return nil, unlessMissing(c.t, err)
	}
	for _, w := range answer.Warnings {
		warnings = append(warnings, wire.OneLine(w.Message))
	}
	for _, e := range answer.Errors {
		return warnings, c.t.Errorf(r.Op, wire.ErrInvalidCard, "%s", e.Message)
	}
	return warnings, nil
}

// CreateRepo creates a model repo. If it exists, created is false, and it stays public or private.
// If private is nil, the namespace's default decides. A repo that should be private but isn't is
// made private before CreateRepo returns.
func (c *Client) CreateRepo(ctx context.Context, repo string,
	private *bool) (created bool, err error) {
	if err := names.CheckNewRepo(repo); err != nil {
		return false, err
	}
	c.seen.Clear()
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
			return e.Under(wire.ErrBusy) // the same user is creating another repo
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
	return true, makePrivate(ctx, c, repo) // the hub ignored "visibility"
}

// makePrivate makes a repo private, and checks that the hub did it.
func makePrivate(ctx context.Context, c *Client, repo string) error {
	r := c.t.RepoSend("set visibility of "+repo, repo, http.MethodPut, "/settings",
		map[string]string{"visibility": "private"})
	if _, err := c.t.Call(ctx, r, nil); err != nil {
		return err
	}
	info, err := c.Info(ctx, repo, "")
	if err == nil && !info.Private {
		return c.t.Errorf(r.Op, wire.ErrForbidden, "the hub didn't make it private")
	}
	return err
}

// CreateBranch creates a branch at a commit, or at main's head if start is empty. If the branch
// exists, it stays where it is, and that's success.
func (c *Client) CreateBranch(ctx context.Context, repo, branch, start string) error {
	c.seen.Clear()
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
		there, err := hasBranch(ctx, c, repo, branch)
		if err == nil && !there {
			return e.Under(wire.ErrBusy) // the hub is busy with the repo
		}
		return err
	})
}

// DeleteBranch deletes a branch. If it doesn't exist, that's success.
func (c *Client) DeleteBranch(ctx context.Context, repo, branch string) error {
	r := c.t.RepoGet("delete branch "+branch+" of "+repo, repo, wire.RevPath("branch", branch))
	r.Method, r.Follow = http.MethodDelete, wire.FollowSame
	_, err := c.t.Call(ctx, r, nil)
	if e := wire.ErrorOf(err); e.Status == http.StatusNotFound {
		// An earlier try may have worked without an answer, and not every 404 says what's missing.
		if there, listErr := hasBranch(ctx, c, repo, branch); listErr == nil && !there {
			return nil
		}
	}
	return err
}

// hasBranch reports whether a branch exists.
func hasBranch(ctx context.Context, c *Client, repo, branch string) (bool, error) {
	names, err := c.Branches(ctx, repo)
	return slices.Contains(names, branch), err
}
