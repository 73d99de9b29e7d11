package hubtest

import (
	"cmp"
	"fmt"
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
	closed                     bool
	created                    time.Time
}

func (pr *pullRequest) status() string {
	if pr.closed {
		return "closed"
	}
	return "open"
}

func (pr *pullRequest) ref() string { return fmt.Sprintf("refs/pr/%d", pr.num) }

// openPR adds a pull request whose ref starts at oid.
func (rp *repo) openPR(now time.Time, author, title, description, base, oid string) *pullRequest {
	pr := &pullRequest{num: len(rp.prs) + 1, title: title, description: description, author: author, base: base, created: now}
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

// discussionsPage is how many discussions the hub lists at once.
const discussionsPage = 50

// listDiscussions answers GET /api/models/{id}/discussions, newest first.
func listDiscussions(c *call) (any, error) {
	q := c.r.URL.Query()
	page, err := strconv.Atoi(cmp.Or(q.Get("p"), "0"))
	if err != nil || page < 0 {
		return nil, fail(http.StatusBadRequest, "p is %q", q.Get("p"))
	}
	found, closed := []map[string]any{}, 0
	for _, pr := range slices.Backward(c.repo.prs) {
		if pr.closed {
			closed++
		}
		if status := q.Get("status"); (status == "open" || status == "closed") && status != pr.status() ||
			q.Get("type") == "discussion" || q.Has("author") && q.Get("author") != pr.author {
			continue
		}
		found = append(found, map[string]any{
			"num": pr.num, "title": pr.title, "status": pr.status(), "isPullRequest": true, "pinned": false,
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
		"num": pr.num, "title": pr.title, "status": pr.status(), "isPullRequest": true,
		"author": author, "createdAt": created, "filesWithConflicts": []string{},
		"changes": map[string]any{"base": "refs/heads/" + pr.base}, "diff": "",
		"repo": map[string]any{"type": "model", "name": c.repo.name},
		"events": []map[string]any{{"id": fmt.Sprintf("%024d", pr.num), "type": "comment", "createdAt": created, "author": author,
			"data": map[string]any{"edited": false, "hidden": false, "latest": text, "history": []any{}, "numEdits": 0}}},
	}, nil
}
