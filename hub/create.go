package hub

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// CreateRepo makes a model repo; created is false if it exists, whose
// visibility then stays as it is. private nil leaves the visibility to the
// namespace's default. A repo that was asked to be private and came out public
// is set private before the call returns.
func (c *Client) CreateRepo(ctx context.Context, repo string, private *bool) (created bool, err error) {
	if err := ValidRepoID(repo); err != nil {
		return false, err
	}
	namespace, name, _ := strings.Cut(repo, "/")
	body := map[string]any{"name": name, "organization": namespace, "type": "model"}
	if private != nil {
		body["visibility"] = visibility(*private)
	}
	r := c.send("create repo "+repo, repo, http.MethodPost, c.Endpoint()+"/api/repos/create", body)
	_, err = c.callCreate(ctx, r)
	if err != nil {
		return false, c.acceptExisting(ctx, repo, err)
	}
	if private != nil && *private {
		return true, c.ensurePrivate(ctx, repo)
	}
	return true, nil
}

func visibility(private bool) string {
	if private {
		return "private"
	}
	return "public"
}

// callCreate repeats the 409 that only says that another creation of the same
// user is running.
func (c *Client) callCreate(ctx context.Context, r *request) (http.Header, error) {
	var header http.Header
	err := c.t.retry(ctx, r, func(ctx context.Context, _ *progress) error {
		resp, err := c.t.exchange(ctx, r)
		if err != nil {
			return busyCreation(err)
		}
		header = resp.Header
		return resp.Body.Close()
	})
	return header, err
}

func busyCreation(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusConflict && strings.Contains(e.Message, "conflicting operation") {
		busy := *e
		busy.Err = errBusy
		return &busy
	}
	return err
}

// acceptExisting turns the refusal to create a repo that exists into success,
// as the Python client does for 401, 402, 403 and 409.
func (c *Client) acceptExisting(ctx context.Context, repo string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Status {
	case http.StatusConflict:
		if errors.Is(err, errBusy) {
			return err
		}
		return nil
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		if _, infoErr := c.Head(ctx, repo, "main"); infoErr == nil {
			return nil
		}
	}
	return err
}

// ensurePrivate guards against hubs that do not know the visibility key.
func (c *Client) ensurePrivate(ctx context.Context, repo string) error {
	info, err := c.Info(ctx, repo, "")
	if err != nil {
		return err
	}
	if info.Private {
		return nil
	}
	return c.setVisibility(ctx, repo, true)
}

// setVisibility changes who may see a repo, and checks that the hub did it.
func (c *Client) setVisibility(ctx context.Context, repo string, private bool) error {
	if err := checkRepo(repo); err != nil {
		return err
	}
	r := c.send("set visibility of "+repo, repo, http.MethodPut, c.apiURL(repo, "/settings"),
		map[string]string{"visibility": visibility(private)})
	if _, err := c.call(ctx, r, nil); err != nil {
		return err
	}
	info, err := c.Info(ctx, repo, "")
	if err != nil {
		return err
	}
	if info.Private != private {
		return c.errorf(r.op, ErrForbidden, "the hub did not make it %s", visibility(private))
	}
	return nil
}

// CreateBranch makes a branch that starts at a commit, or at main's head if
// start is empty. A branch that exists is success, and stays where it is.
func (c *Client) CreateBranch(ctx context.Context, repo, branch, start string) error {
	if err := checkRepo(repo); err != nil {
		return err
	}
	body := map[string]string{}
	if start != "" {
		body["startingPoint"] = start
	}
	r := c.send("create branch "+branch+" of "+repo, repo, http.MethodPost, c.branchURL(repo, branch), body)
	_, err := c.call(ctx, r, nil)
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusConflict {
		return nil
	}
	return err
}

// DeleteBranch removes a branch; one that does not exist is success.
func (c *Client) DeleteBranch(ctx context.Context, repo, branch string) error {
	if err := checkRepo(repo); err != nil {
		return err
	}
	r := c.get("delete branch "+branch+" of "+repo, repo, c.branchURL(repo, branch))
	r.method, r.follow = http.MethodDelete, followSame
	_, err := c.call(ctx, r, nil)
	if errors.Is(err, ErrRevisionNotFound) || errors.Is(err, ErrEntryNotFound) {
		return nil
	}
	return err
}

func (c *Client) branchURL(repo, branch string) string {
	return c.apiURL(repo, "/branch/"+url.PathEscape(branch))
}
