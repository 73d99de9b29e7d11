package hub

import "context"

// The tests outside of the package call these methods by themselves, no program does.

func (c *Client) OwnPullRequests(ctx context.Context, repo string) ([]PullRequest, error) {
	return c.ownPullRequests(ctx, repo)
}

func (c *Client) MakePrivate(ctx context.Context, repo string) error {
	return c.makePrivate(ctx, repo)
}
