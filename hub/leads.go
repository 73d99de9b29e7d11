package hub

import (
	"context"
	"errors"

	"github.com/df11-convert/df11-convert/internal/names"
)

// Leads returns the name that a repo has now, or "" if no repo that the token may see is or was
// called so: the Hub redirects from names that a repo had before
// (https://huggingface.co/docs/hub/repositories-settings#renaming-or-transferring-a-repo).
func (c *Client) Leads(ctx context.Context, repo string) (string, error) {
	if !names.IsRepo(repo) {
		return "", nil
	}
	info, err := c.Info(ctx, repo, "")
	switch {
	case err == nil:
		return info.ID, nil
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrRevisionNotFound),
		errors.Is(err, ErrUnauthorized), errors.Is(err, ErrForbidden),
		errors.Is(err, ErrGated), errors.Is(err, ErrOffline):
		return "", nil
	}
	return "", err
}
