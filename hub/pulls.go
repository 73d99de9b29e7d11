package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// PullRequest is a pull request that is still open.
type PullRequest struct {
	Title string
	URL   string
	Ref   string // "refs/pr/7": the revision to commit further changes to
}

var pullNumber = regexp.MustCompile(`/discussions/(\d+)`)

// discussion is a row of a repo's list. A draft is open, too; the hub lists "merged" and "closed" ones besides.
type discussion struct {
	Num           int64  `json:"num"`
	Title         string `json:"title"`
	Status        string `json:"status"`
	IsPullRequest bool   `json:"isPullRequest"`
	Author        struct {
		Name string `json:"name"`
	} `json:"author"`
}

func (d discussion) open() bool {
	return d.IsPullRequest && d.Num > 0 && (d.Status == "open" || d.Status == "draft")
}

// ownPullRequest finds the newest open pull request that the owner of the token has made on a repo and that is accepted; nil
// if there is none. Pull requests of other users are left out, whatever they hold: nobody else may say which work this user
// has done.
func (c *Client) ownPullRequest(ctx context.Context, repo string, accept func(PullRequest) (bool, error)) (*PullRequest, error) {
	me, err := c.WhoAmI(ctx)
	if err != nil {
		return nil, err
	}
	for page, seen := 0, 0; page < maxPages; page++ {
		rest := fmt.Sprintf("/discussions?p=%d&type=pull_request&author=%s", page, url.QueryEscape(me))
		var list struct {
			Discussions []discussion `json:"discussions"`
			Count       int          `json:"count"`
		}
		r := c.t.repoGet("list pull requests of "+repo, repo, rest)
		if _, err := c.t.call(ctx, r, &list); err != nil {
			return nil, err
		}
		for _, d := range list.Discussions {
			if !d.open() || d.Author.Name != me {
				continue
			}
			number := strconv.FormatInt(d.Num, 10)
			pr := PullRequest{Title: d.Title, Ref: "refs/pr/" + number, URL: c.t.endpoint.page(repo, "/discussions/"+number)}
			if ok, err := accept(pr); ok || err != nil {
				return &pr, err
			}
		}
		if seen += len(list.Discussions); len(list.Discussions) == 0 || seen >= list.Count {
			break
		}
	}
	return nil, nil
}

// FindPullRequest finds the newest open pull request of the token's owner whose title holds a mark and which is to be
// merged into a branch; nil if there is none.
func (c *Client) FindPullRequest(ctx context.Context, repo, branch, mark string) (*PullRequest, error) {
	return c.ownPullRequest(ctx, repo, func(pr PullRequest) (bool, error) {
		if !strings.Contains(pr.Title, mark) {
			return false, nil
		}
		var details struct {
			Changes struct {
				Base string `json:"base"`
			} `json:"changes"`
		}
		r := c.t.repoGet("read pull request "+pr.URL, repo, "/discussions/"+strings.TrimPrefix(pr.Ref, "refs/pr/"))
		_, err := c.t.call(ctx, r, &details)
		return details.Changes.Base == "refs/heads/"+cmp.Or(branch, "main"), err
	})
}

// pullWaits are the pauses between looks for a pull request whose answer got lost. The hub gives itself about a minute to
// finish what it has begun.
var pullWaits = []time.Duration{0, 2 * time.Second, 8 * time.Second, 20 * time.Second, 45 * time.Second}

// tryPull makes one attempt to open a pull request with the changes. When its answer leaves open whether it was made, the
// list of our own tells. The attempt is repeated only if the pull request had time to appear there and did not.
func (p *pendingCommit) tryPull(ctx context.Context) error {
	cause := p.post(ctx)
	if cause == nil || !unsettled(cause) || errors.Is(cause, ErrConflict) {
		return missingObject(cause)
	}
	for _, d := range pullWaits {
		if err := p.c.Pause(ctx, "looking whether the pull request was opened", d); err != nil {
			return err
		}
		opened, err := p.lookForPull(ctx)
		if err != nil {
			return unknownOutcome(ctx, cause, err)
		}
		if opened {
			return nil
		}
	}
	return cause
}

// lookForPull finds our open pull request of the very title that holds all changes.
func (p *pendingCommit) lookForPull(ctx context.Context) (bool, error) {
	var head string
	pr, err := p.c.ownPullRequest(ctx, p.repo, func(pr PullRequest) (landed bool, err error) {
		if pr.Title == p.Summary {
			head, landed, err = p.landed(ctx, pr.Ref)
		}
		return landed, err
	})
	if err != nil || pr == nil {
		return false, err
	}
	p.done = Commit{OID: head, PullRequestURL: pr.URL, PullRequestRef: pr.Ref}
	return true, nil
}

// unknownOutcome is the end when neither the answer nor a look tells whether the pull request was opened.
func unknownOutcome(ctx context.Context, cause, look error) error {
	e, ok := errors.AsType[*Error](cause)
	if ctx.Err() != nil || !ok {
		return look
	}
	return &gaveUp{e.as(ErrUnknownOutcome)}
}
