package hub

import (
	"context"
	"errors"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/names"
)

// Leads returns the name that a repo has now, or "" if no repo that the token may see is or was
// called so: the Hub redirects from names that a repo had before
// (https://huggingface.co/docs/hub/repositories-settings#renaming-or-transferring-a-repo).
func (c *Client) Leads(ctx context.Context, repo string) (_ string, err error) {
	defer exported(&err)
	if !names.IsRepo(repo) {
		return "", nil
	}
	info, err := c.Info(ctx, repo, "")
	switch {
	case err == nil:
		return info.ID, nil
	case errors.Is(err, wire.ErrNotFound), errors.Is(err, wire.ErrRevisionNotFound),
		errors.Is(err, wire.ErrUnauthorized), errors.Is(err, wire.ErrForbidden),
		errors.Is(err, wire.ErrGated), errors.Is(err, wire.ErrOffline):
		return "", nil
	}
	return "", err
}
