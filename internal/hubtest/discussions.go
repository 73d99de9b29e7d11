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

// openPR adds a pull request whose ref starts at oid. The caller holds Server.mu.
func (rp *repo) openPR(now time.Time, author, title, description, base, oid string) *pullRequest {
	pr := &pullRequest{num: len(rp.prs) + 1, title: title, description: description, author: author, base: base, status: "open", created: now}
	rp.prs = append(rp.prs, pr)
	rp.refs[pr.ref()] = oid
	return pr
}

// createDiscussion answers POST /api/models/{id}/discussions.
func (s *Server) createDiscussion(w http.ResponseWriter, r *http.Request) error {
	rp, u, err := s.repoFor(r, accessUpload)
	if err != nil {
		return err
	}
	var q struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		PullRequest bool   `json:"pullRequest"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if !q.PullRequest {
		return fail(http.StatusBadRequest, "this hub opens pull requests only")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pr := rp.openPR(s.cfg.clock(), u.Name, q.Title, q.Description, "main", rp.refs["refs/heads/main"])
	pr.status = "draft"
	writeJSON(w, http.StatusOK, map[string]any{"num": pr.num, "pullRequest": true,
		"url": fmt.Sprintf("%s/%s/discussions/%d", s.URL, rp.name, pr.num)})
	return nil
}

// discussionsPage is how many discussions the hub lists at once.
const discussionsPage = 50

// listDiscussions answers GET /api/models/{id}/discussions, newest first. Drafts
// count as open and merged pull requests as closed.
func (s *Server) listDiscussions(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessInfo)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	page, err := strconv.Atoi(cmp.Or(q.Get("p"), "0"))
	if err != nil || page < 0 {
		return fail(http.StatusBadRequest, "p is %q", q.Get("p"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, closed := []map[string]any{}, 0
	for _, pr := range slices.Backward(rp.prs) {
		isClosed := pr.status == "closed" || pr.status == "merged"
		if isClosed {
			closed++
		}
		if status := q.Get("status"); status == "open" && isClosed || status == "closed" && !isClosed ||
			q.Get("type") == "discussion" || q.Has("author") && q.Get("author") != pr.author {
			continue
		}
		found = append(found, pr.summary(rp))
	}
	start := min(page*discussionsPage, len(found))
	writeJSON(w, http.StatusOK, map[string]any{"discussions": found[start:min(start+discussionsPage, len(found))],
		"count": len(found), "start": page * discussionsPage, "numClosedDiscussions": closed})
	return nil
}

// summary is a pull request as the list shows it.
func (pr *pullRequest) summary(rp *repo) map[string]any {
	return map[string]any{
		"num": pr.num, "title": pr.title, "status": pr.status, "isPullRequest": true, "pinned": false,
		"author": map[string]any{"name": pr.author, "type": "user"}, "createdAt": pr.created.UTC().Format(hubTime),
		"repo": map[string]any{"type": "model", "name": rp.name}, "numComments": 1, "numReactionUsers": 0, "topReactions": []any{},
	}
}

// setDiscussionStatus answers POST /api/models/{id}/discussions/{num}/status.
func (s *Server) setDiscussionStatus(w http.ResponseWriter, r *http.Request) error {
	rp, u, err := s.repoFor(r, accessUpload)
	if err != nil {
		return err
	}
	var q struct {
		Status string `json:"status"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pr, err := pullRequestOf(rp, r)
	switch {
	case err != nil:
		return err
	case q.Status != "open" && q.Status != "closed":
		return fail(http.StatusBadRequest, "status is %q", q.Status)
	case pr.status == "merged":
		return fail(http.StatusBadRequest, "the pull request was merged already")
	case u.Name != pr.author && !u.owns(rp.namespace()):
		return fail(http.StatusForbidden, "You don't have the rights to change this pull request")
	}
	pr.status = q.Status
	writeJSON(w, http.StatusOK, map[string]any{"newStatus": map[string]any{"id": fmt.Sprintf("%024d", pr.num), "type": "status-change",
		"createdAt": s.cfg.clock().UTC().Format(hubTime), "author": map[string]any{"name": u.Name}, "data": map[string]any{"status": pr.status}}})
	return nil
}

// pullRequestOf finds the discussion that the path names. The caller holds s.mu.
func pullRequestOf(rp *repo, r *http.Request) (*pullRequest, error) {
	n, err := strconv.Atoi(r.PathValue("num"))
	if err != nil || n < 1 || n > len(rp.prs) {
		return nil, fail(http.StatusNotFound, "discussion not found")
	}
	return rp.prs[n-1], nil
}

// discussion answers GET /api/models/{id}/discussions/{num}.
func (s *Server) discussion(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessInfo)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pr, err := pullRequestOf(rp, r)
	if err != nil {
		return err
	}
	created := pr.created.UTC().Format(hubTime)
	writeJSON(w, http.StatusOK, map[string]any{
		"num": pr.num, "title": pr.title, "status": pr.status, "isPullRequest": true,
		"author": map[string]any{"name": pr.author}, "createdAt": created, "filesWithConflicts": []string{},
		"changes": map[string]any{"base": "refs/heads/" + pr.base}, "diff": "",
		"repo": map[string]any{"type": "model", "name": rp.name},
		"events": []map[string]any{{"id": fmt.Sprintf("%024d", pr.num), "type": "comment", "createdAt": created,
			"author": map[string]any{"name": pr.author},
			"data":   map[string]any{"edited": false, "hidden": false, "latest": map[string]any{"raw": pr.description, "html": pr.description, "updatedAt": created, "author": map[string]any{"name": pr.author}}, "history": []any{}, "numEdits": 0}}},
	})
	return nil
}

// mergeDiscussion answers POST /api/models/{id}/discussions/{num}/merge: the
// pull request's files become the base branch's.
func (s *Server) mergeDiscussion(w http.ResponseWriter, r *http.Request) error {
	rp, u, err := s.repoFor(r, accessWrite)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pr, err := pullRequestOf(rp, r)
	if err != nil {
		return err
	}
	if pr.status == "merged" || pr.status == "closed" {
		return fail(http.StatusBadRequest, "the pull request is %s already", pr.status)
	}
	head := rp.commits[rp.refs[pr.ref()]]
	pr.status = "merged"
	rp.add(s.cfg.clock(), branchRef(pr.base), &commit{title: pr.title, message: pr.description, author: u.Name, files: maps.Clone(head.files)})
	if pr.base == "main" {
		if err := s.land(rp); err != nil {
			return err
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"success": true})
	return nil
}

// ClosePullRequest closes a pull request without merging it.
func (s *Server) ClosePullRequest(repo string, num int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos[repo].prs[num-1].status = "closed"
}
