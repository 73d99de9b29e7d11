package hub

import "context"

// OwnPullRequests and SetVisibility are steps that only the tests outside the
// package call by themselves.

func (c *Client) OwnPullRequests(ctx context.Context, repo string) ([]PullRequest, error) {
	return c.ownPullRequests(ctx, repo)
}

func (c *Client) SetVisibility(ctx context.Context, repo string, private bool) error {
	return c.setVisibility(ctx, repo, private)
}
