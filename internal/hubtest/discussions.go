package hubtest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// pullRequest is a discussion with a ref of its own.
type pullRequest struct {
	num                        int
	title, description, author string
	base                       string // branch
	status                     string // draft, open, closed or merged
	created                    time.Time
}

func (pr *pullRequest) ref() string { return fmt.Sprintf("refs/pr/%d", pr.num) }

func (pr *pullRequest) closed() bool { return pr.status == "closed" || pr.status == "merged" }

// openPR adds a pull request whose ref starts at oid.
func (rp *repo) openPR(now time.Time, author, title, description, base, oid string) *pullRequest {
	pr := &pullRequest{num: len(rp.prs) + 1, title: title, description: description, author: author, base: base, status: "open", created: now}
	rp.prs = append(rp.prs, pr)
	rp.refs[pr.ref()] = oid
	return pr
}

func (c *call) discussionURL(pr *pullRequest) string {
	return fmt.Sprintf("%s/%s/discussions/%d", c.URL, c.repo.name, pr.num)
}

// pullRequest finds the discussion that the path names.
func (c *call) pullRequest() (*pullRequest, error) {
	n, err := strconv.Atoi(c.r.PathValue("num"))
	if err != nil || n < 1 || n > len(c.repo.prs) {
		return nil, fail(http.StatusNotFound, "discussion not found")
	}
	return c.repo.prs[n-1], nil
}

func createDiscussion(c *call, q struct {
	Title, Description string
	PullRequest        bool
}) (any, error) {
	if !q.PullRequest {
		return nil, fail(http.StatusBadRequest, "this hub opens pull requests only")
	}
	pr := c.repo.openPR(c.cfg.clock(), c.user.Name, q.Title, q.Description, "main", c.repo.refs["refs/heads/main"])
	pr.status = "draft"
	return map[string]any{"num": pr.num, "pullRequest": true, "url": c.discussionURL(pr)}, nil
}

// discussionsPage is how many discussions the hub lists at once.
const discussionsPage = 50

// listDiscussions answers GET /api/models/{id}/discussions, newest first. Drafts count as open and merged pull requests as
// closed.
func listDiscussions(c *call) (any, error) {
	q := c.r.URL.Query()
	page, err := strconv.Atoi(cmp.Or(q.Get("p"), "0"))
	if err != nil || page < 0 {
		return nil, fail(http.StatusBadRequest, "p is %q", q.Get("p"))
	}
	found, closed := []map[string]any{}, 0
	for _, pr := range slices.Backward(c.repo.prs) {
		if pr.closed() {
			closed++
		}
		if status := q.Get("status"); status == "open" && pr.closed() || status == "closed" && !pr.closed() ||
			q.Get("type") == "discussion" || q.Has("author") && q.Get("author") != pr.author {
			continue
		}
		found = append(found, map[string]any{
			"num": pr.num, "title": pr.title, "status": pr.status, "isPullRequest": true, "pinned": false,
			"author": map[string]any{"name": pr.author, "type": "user"}, "createdAt": pr.created.UTC().Format(hubTime),
			"repo": map[string]any{"type": "model", "name": c.repo.name}, "numComments": 1, "numReactionUsers": 0, "topReactions": []any{},
		})
	}
	start := min(page*discussionsPage, len(found))
	return map[string]any{"discussions": found[start:min(start+discussionsPage, len(found))],
		"count": len(found), "start": page * discussionsPage, "numClosedDiscussions": closed}, nil
}

func discussion(c *call) (any, error) {
	pr, err := c.pullRequest()
	if err != nil {
		return nil, err
	}
	created, author := pr.created.UTC().Format(hubTime), map[string]any{"name": pr.author}
	text := map[string]any{"raw": pr.description, "html": pr.description, "updatedAt": created, "author": author}
	return map[string]any{
		"num": pr.num, "title": pr.title, "status": pr.status, "isPullRequest": true,
		"author": author, "createdAt": created, "filesWithConflicts": []string{},
		"changes": map[string]any{"base": "refs/heads/" + pr.base}, "diff": "",
		"repo": map[string]any{"type": "model", "name": c.repo.name},
		"events": []map[string]any{{"id": fmt.Sprintf("%024d", pr.num), "type": "comment", "createdAt": created, "author": author,
			"data": map[string]any{"edited": false, "hidden": false, "latest": text, "history": []any{}, "numEdits": 0}}},
	}, nil
}

func setDiscussionStatus(c *call, q struct{ Status string }) (any, error) {
	pr, err := c.pullRequest()
	switch {
	case err != nil:
		return nil, err
	case q.Status != "open" && q.Status != "closed":
		return nil, fail(http.StatusBadRequest, "status is %q", q.Status)
	case pr.status == "merged":
		return nil, fail(http.StatusBadRequest, "the pull request was merged already")
	case c.user.Name != pr.author && !c.user.owns(c.repo.namespace()):
		return nil, fail(http.StatusForbidden, "You don't have the rights to change this pull request")
	}
	pr.status = q.Status
	return map[string]any{"newStatus": map[string]any{"id": fmt.Sprintf("%024d", pr.num), "type": "status-change",
		"createdAt": c.cfg.clock().UTC().Format(hubTime), "author": map[string]any{"name": c.user.Name}, "data": map[string]any{"status": pr.status}}}, nil
}

// mergeDiscussion answers POST /api/models/{id}/discussions/{num}/merge: the pull request's files become the base
// branch's.
func mergeDiscussion(c *call) (any, error) {
	pr, err := c.pullRequest()
	if err != nil {
		return nil, err
	}
	if pr.closed() {
		return nil, fail(http.StatusBadRequest, "the pull request is %s already", pr.status)
	}
	head := c.repo.commits[c.repo.refs[pr.ref()]]
	pr.status = "merged"
	_, err = c.commitTo(branchRef(pr.base), &Commit{Title: pr.title, Message: pr.description, Author: c.user.Name, Files: maps.Clone(head.Files)})
	return map[string]any{"success": true}, err
}
