package hub

import "context"

// MakePrivate is called by CreateRepo only where a hub does not know visibility; tests call it by itself.
func (c *Client) MakePrivate(ctx context.Context, repo string) error {
	return c.makePrivate(ctx, repo)
}
