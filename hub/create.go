package hub

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// CreateRepo makes a model repo; created is false if it exists, whose visibility then stays as it is. private nil leaves
// the visibility to the namespace's default. A repo that was asked to be private and came out public is set private
// before the call returns.
func (c *Client) CreateRepo(ctx context.Context, repo string, private *bool) (created bool, err error) {
	if err := ValidRepoID(repo); err != nil {
		return false, err
	}
	namespace, name, _ := strings.Cut(repo, "/")
	body := map[string]any{"name": name, "organization": namespace, "type": "model"}
	if private != nil {
		body["visibility"] = visibility[*private]
	}
	r := send("create repo "+repo, repo, http.MethodPost, c.Endpoint()+"/api/repos/create", body)
	err = c.t.retry(ctx, r, func(ctx context.Context, _ *progress) error {
		_, err := c.t.once(ctx, r, nil)
		e, ok := errors.AsType[*Error](err)
		if ok && e.Status == http.StatusConflict && strings.Contains(e.Message, "conflicting operation") {
			return e.as(errBusy) // the same user creates another repo just now
		}
		return err
	})
	if err != nil {
		return false, c.acceptExisting(ctx, repo, err)
	}
	if private == nil || !*private {
		return true, nil
	}
	info, err := c.Info(ctx, repo, "")
	if err != nil || info.Private {
		return true, err
	}
	return true, c.setVisibility(ctx, repo, true) // the hub does not know the member visibility
}

var visibility = map[bool]string{true: "private", false: "public"} // by private

// acceptExisting turns the refusal to create a repo that exists into success, as the Python client does for 401, 402, 403
// and 409.
func (c *Client) acceptExisting(ctx context.Context, repo string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	switch e.Status {
	case http.StatusConflict:
		if !errors.Is(err, errBusy) {
			return nil
		}
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		if _, headErr := c.Head(ctx, repo, "main"); headErr == nil {
			return nil
		}
	}
	return err
}

// setVisibility changes who may see a repo, and checks that the hub did it.
func (c *Client) setVisibility(ctx context.Context, repo string, private bool) error {
	r := c.t.repoSend("set visibility of "+repo, repo, http.MethodPut, "/settings",
		map[string]string{"visibility": visibility[private]})
	if _, err := c.t.call(ctx, r, nil); err != nil {
		return err
	}
	info, err := c.Info(ctx, repo, "")
	if err != nil {
		return err
	}
	if info.Private != private {
		return c.t.errorf(r.op, ErrForbidden, "the hub did not make it %s", visibility[private])
	}
	return nil
}

// CreateBranch makes a branch that starts at a commit, or at main's head if start is empty. A branch that exists is
// success, and stays where it is.
func (c *Client) CreateBranch(ctx context.Context, repo, branch, start string) error {
	body := map[string]string{}
	if start != "" {
		body["startingPoint"] = start
	}
	r := c.t.repoSend("create branch "+branch+" of "+repo, repo, http.MethodPost, revPath("branch", branch), body)
	_, err := c.t.call(ctx, r, nil)
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusConflict {
		return nil
	}
	return err
}

// DeleteBranch removes a branch; one that does not exist is success.
func (c *Client) DeleteBranch(ctx context.Context, repo, branch string) error {
	r := c.t.repoGet("delete branch "+branch+" of "+repo, repo, revPath("branch", branch))
	r.method, r.follow = http.MethodDelete, followSame
	_, err := c.t.call(ctx, r, nil)
	if errors.Is(err, ErrRevisionNotFound) || errors.Is(err, ErrEntryNotFound) {
		return nil
	}
	return err
}
