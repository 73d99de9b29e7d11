package hub

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/names"
)

// NeedToken returns ErrUnauthorized if the client has no token. It makes no request.
func (c *Client) NeedToken() error {
	if !c.t.hasToken() {
		return c.t.errorf("log in", ErrUnauthorized, "no token is set")
	}
	return nil
}

// WhoAmI returns the name of the token's owner: "ns" of ns/name. The hub limits this question
// tightly, so the client asks once and remembers the answer.
func (c *Client) WhoAmI(ctx context.Context) (string, error) {
	if err := c.NeedToken(); err != nil {
		return "", err
	}
	if o := c.said.owner.Load(); o != nil {
		return o.Name, nil
	}
	var o owner
	if _, err := c.t.call(ctx, c.ownerRequest(), &o); err != nil {
		return "", err
	}
	c.said.owner.Store(&o)
	return o.Name, nil
}

// ownerRequest returns the request for the token's owner.
func (c *Client) ownerRequest() *request {
	return getRequest("read the token's owner", "", c.Endpoint()+"/api/whoami-v2")
}

// hintPatience is how long a question may take whose answer only explains a failure.
const hintPatience = 10 * time.Second

// knownOwner returns the token's owner as far as one short question finds out, for hints only. It
// keeps the answer. If the Hub doesn't say, it keeps that, too.
func (c *Client) knownOwner(ctx context.Context) owner {
	c.said.asked.Do(func() {
		if c.said.owner.Load() != nil || c.only != "" { // a trusted publisher's token is no user's
			return
		}
		ctx, cancel := context.WithTimeout(ctx, hintPatience)
		defer cancel()
		r := c.ownerRequest()
		r.noRepeat = true
		var o owner
		if _, err := c.t.call(ctx, r, &o); err == nil {
			c.said.owner.Store(&o)
		}
	})
	if o := c.said.owner.Load(); o != nil {
		return *o
	}
	return owner{}
}

// refusedWrite returns the error of a write that may have been refused. The Hub's words are about
// this repo or namespace, also if the token is for reading, or fine-grained without this right.
func (c *Client) refusedWrite(ctx context.Context, err error) error {
	e := errorOf(err)
	if !errors.Is(err, ErrForbidden) || e.TokenSource == "" {
		return err
	}
	o := c.knownOwner(ctx)
	if _, cause := o.lacks(e.Repo); cause != nil {
		return e.under(cause)
	}
	namespace, _, _ := strings.Cut(e.Repo, "/")
	if errors.Is(err, ErrNamespace) && strings.EqualFold(o.Name, namespace) {
		return e.under(errOwnNamespace) // no other namespace would help
	}
	return err
}

// CheckRight returns an error if the hub says that the token may not write to a repo or, unless it
// exists, create it. It asks without a write. A hub that doesn't say so may still refuse the write.
func (c *Client) CheckRight(ctx context.Context, repo string, exists bool) error {
	if !c.t.hasToken() || c.t.opt.Offline {
		return nil
	}
	r := getRequest("create repo "+repo, repo, "")
	if exists {
		r = c.mayWrite(repo)
		r.noRepeat = true
		if _, err := c.t.call(ctx, r, nil); err == nil || errors.Is(err, ErrForbidden) {
			return c.refusedWrite(ctx, err)
		}
	}
	words, cause := c.knownOwner(ctx).lacks(repo)
	if cause == nil {
		return nil
	}
	e := c.t.failure(r, nil, cause)
	e.Message = words
	return e
}

// mayWrite returns the request that asks whether the token may write to a repo.
func (c *Client) mayWrite(repo string) *request {
	return c.t.repoGet("write to "+repo, repo, "/auth-check/write")
}

// Quantized returns a few repos whose names contain search and whose cards say that they hold base
// in another form. Anyone can write that into a card.
func (c *Client) Quantized(ctx context.Context, base, search string) (ids []string, err error) {
	q := url.Values{"filter": {"base_model:quantized:" + base}, "search": {search}, "limit": {"5"}}
	var docs []struct{ ID string }
	_, err = c.t.call(ctx, getRequest("look for other forms of "+base, "",
		c.Endpoint()+"/api/models?"+q.Encode()), &docs)
	for _, d := range docs {
		if names.IsRepo(d.ID) {
			ids = append(ids, d.ID)
		}
	}
	return ids, err
}

// CheckAccess checks that the token may write to an existing repo, before anything is uploaded. If
// the hub has no route for that, as hfd, it asks how to upload a card.
func (c *Client) CheckAccess(ctx context.Context, repo string) error {
	_, err := c.t.call(ctx, c.mayWrite(repo), nil)
	if errorOf(err).Status == http.StatusNotFound { // olah calls a missing route a missing repo
		card := Blob{Path: names.Card, Reader: strings.NewReader("")}
		err = preupload(ctx, []*upload{{Client: c, repo: repo, rev: "main", Blob: card}})
	}
	return c.refusedWrite(ctx, err)
}

// ValidateCard lets the hub check a model card before anything is uploaded, because the commit
// would refuse it. A hub without this route, as hfd was until February 2026, finds nothing.
func (c *Client) ValidateCard(ctx context.Context, readme []byte) error {
	var answer struct {
		Errors []struct{ Message string }
	}
	r := sendRequest("validate the model card", "", http.MethodPost,
		c.Endpoint()+"/api/validate-yaml",
		map[string]string{"content": string(readme), "repoType": "model"})
	_, err := c.t.call(ctx, r, &answer)
	if errors.Is(err, errNoRoute) {
		return nil
	}
	if e := errorOf(err); e.Status == http.StatusBadRequest && e.Err == nil {
		return e.under(ErrCard)
	}
	if err == nil && len(answer.Errors) > 0 {
		err = c.t.errorf(r.op, ErrCard, "%s", answer.Errors[0].Message)
	}
	return err
}

// CreateRepo creates a model repo. If it exists, created is false, and it stays public or private.
// If private is nil, the namespace's default decides. A hub may ignore private.
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
	r := sendRequest("create repo "+repo, repo, http.MethodPost, c.Endpoint()+"/api/repos/create",
		body)
	r.lane = "create"
	err = c.t.retry(ctx, r, func(ctx context.Context) error {
		_, err := c.t.callOnce(ctx, r, nil)
		e := errorOf(err)
		if e.Status == http.StatusConflict && strings.Contains(e.Message,
			"conflicting operation") {
			// the same user is creating another repo:
			// https://github.com/huggingface/huggingface_hub/pull/1675
			return e.under(errBusy)
		}
		return err
	})
	if errors.Is(err, ErrConflict) {
		return false, nil
	}
	return err == nil, c.refusedWrite(ctx, err)
}

// CreateBranch creates a branch at a commit, or at main's head if start is empty. If the branch
// exists (409), it stays where it is, and that's success.
func (c *Client) CreateBranch(ctx context.Context, repo, branch, start string) error {
	body := map[string]string{}
	if start != "" {
		body["startingPoint"] = start
	}
	_, err := c.t.call(ctx, c.t.repoSend("create branch "+branch+" of "+repo, repo, http.MethodPost,
		revPath("branch", branch), body), nil)
	if errors.Is(err, ErrConflict) {
		return nil
	}
	return err
}

// DeleteBranch deletes a branch. If it doesn't exist, that's success. KohakuHub answers 500 to
// that, which happens when two programs finish at once, so a failure asks first whether it's there.
func (c *Client) DeleteBranch(ctx context.Context, repo, branch string) error {
	r := c.t.repoGet("delete branch "+branch+" of "+repo, repo, revPath("branch", branch))
	r.method, r.follow, r.noRepeat = http.MethodDelete, followSame, true
	_, err := c.t.call(ctx, r, nil)
	if e := errorOf(err); err != nil && e.Temporary() {
		if _, gone := c.Head(ctx, repo, branch); errors.Is(gone, ErrRevisionNotFound) {
			return nil
		}
		r.noRepeat = false
		_, err = c.t.call(ctx, r, nil)
	}
	if e := errorOf(err); e.Status == http.StatusNotFound {
		return nil // an earlier try may have worked without an answer
	}
	return err
}
