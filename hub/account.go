package hub

import (
	"context"
	"errors"
	"net/http"
)

// User is the owner of the token.
type User struct {
	Name      string // "ns" of ns/name
	Orgs      []string
	TokenRole string // informational; CheckAccess tests what the token may do
}

// WhoAmI names the owner of the token. The hub limits this question tightly, so a client asks it once and remembers the
// answer.
func (c *Client) WhoAmI(ctx context.Context) (*User, error) {
	const op = "read the token's owner"
	if c.t.opt.Token == "" {
		return nil, c.t.errorf(op, ErrUnauthorized, "no token is set")
	}
	if user := c.user.Load(); user != nil {
		return user, nil
	}
	var doc struct {
		Name string
		Orgs []struct{ Name string }
		Auth struct {
			AccessToken struct{ Role string }
		}
	}
	if _, err := c.t.call(ctx, get(op, "", c.Endpoint()+"/api/whoami-v2"), &doc); err != nil {
		return nil, err
	}
	user := &User{Name: doc.Name, TokenRole: doc.Auth.AccessToken.Role}
	for _, o := range doc.Orgs {
		user.Orgs = append(user.Orgs, o.Name)
	}
	c.user.Store(user)
	return user, nil
}

// CheckAccess asks whether the token may read (or write) a repo's content.
func (c *Client) CheckAccess(ctx context.Context, repo string, write bool) error {
	op, rest := "check read access to "+repo, "/auth-check"
	if write {
		op, rest = "check write access to "+repo, "/auth-check/write"
	}
	_, err := c.t.call(ctx, c.t.repoGet(op, repo, rest), nil)
	return err
}

// ValidateCard lets the hub check a model card before anything is uploaded: warnings are only shown, an error (wrapping
// ErrInvalidCard) would refuse the commit.
func (c *Client) ValidateCard(ctx context.Context, readme []byte) (warnings []string, err error) {
	type remark struct {
		Message string `json:"message"`
	}
	var answer struct{ Errors, Warnings []remark }
	r := send("validate the model card", "", http.MethodPost, c.Endpoint()+"/api/validate-yaml",
		map[string]string{"content": string(readme), "repoType": "model"})
	_, err = c.t.call(ctx, r, &answer)
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusBadRequest {
		return nil, e.as(ErrInvalidCard)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range answer.Warnings {
		warnings = append(warnings, oneLine(w.Message))
	}
	for _, e := range answer.Errors {
		return warnings, c.t.errorf(r.op, ErrInvalidCard, "%s", oneLine(e.Message))
	}
	return warnings, nil
}
