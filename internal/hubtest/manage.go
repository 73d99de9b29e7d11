package hubtest

import (
	"maps"
	"net/http"
	"regexp"
	"strings"
)

// repoRequest is the body of the routes below /api/repos/.
type repoRequest struct {
	Name         string  `json:"name"`
	Organization *string `json:"organization"`
	Type         *string `json:"type"`
	Private      *bool   `json:"private"`
	Visibility   string  `json:"visibility"`
	FromRepo     string  `json:"fromRepo"`
	ToRepo       string  `json:"toRepo"`
}

var (
	goodName = regexp.MustCompile(`^[A-Za-z0-9_]$|^[A-Za-z0-9_][A-Za-z0-9._-]*[A-Za-z0-9_]$`)
	badName  = regexp.MustCompile(`--|\.\.|\.git$`)
)

// repoName checks the body and returns the full name.
func (q repoRequest) repoName(u *User) (string, error) {
	ns, name := u.Name, q.Name
	if q.Organization != nil && *q.Organization != "" {
		ns = *q.Organization
	} else if before, after, ok := strings.Cut(name, "/"); ok {
		ns, name = before, after
	}
	switch {
	case q.Type != nil && *q.Type != "" && *q.Type != "model":
		return "", fail(http.StatusBadRequest, "this hub holds models only, not %s", *q.Type)
	case len(name) > 96 || !goodName.MatchString(name) || badName.MatchString(name):
		return "", fail(http.StatusBadRequest, "Invalid repo name: %s", name)
	case !u.owns(ns):
		return "", fail(http.StatusForbidden, "You don't have the rights to create a model under the namespace %q", ns)
	case u.ReadOnly:
		return "", fail(http.StatusForbidden, "You must use a write token to create a repository.")
	}
	return ns + "/" + name, nil
}

// createRepo answers POST /api/repos/create.
func (s *Server) createRepo(w http.ResponseWriter, r *http.Request) error {
	name, q, err := s.repoBody(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repos[name] != nil {
		return &apiError{status: http.StatusConflict, message: "You already created this model repo",
			extra: map[string]any{"url": s.URL + "/" + name}}
	}
	private := q.Visibility == "private" || q.Visibility == "" && q.Private != nil && *q.Private
	rp := s.newRepo(name, repoOptions{Private: private})
	if err := s.land(rp); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"url": s.URL + "/" + name, "name": name, "id": blobID([]byte(name))[:24], "private": private})
	return nil
}

// repoBody reads the body and checks the caller's right to the name in it.
func (s *Server) repoBody(r *http.Request) (name string, q repoRequest, err error) {
	u, err := s.knownUser(r)
	if err != nil {
		return "", q, err
	}
	if err := readJSON(r, &q); err != nil {
		return "", q, err
	}
	name, err = q.repoName(u)
	return name, q, err
}

// deleteRepo answers DELETE /api/repos/delete.
func (s *Server) deleteRepo(w http.ResponseWriter, r *http.Request) error {
	name, _, err := s.repoBody(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repos[name] == nil {
		return errRepoNotFound(false)
	}
	delete(s.repos, name)
	if err := s.unland(name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// moveRepo answers POST /api/repos/move.
func (s *Server) moveRepo(w http.ResponseWriter, r *http.Request) error {
	u, err := s.knownUser(r)
	if err != nil {
		return err
	}
	var q repoRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	to, err := repoRequest{Name: q.ToRepo}.repoName(u)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.repos[q.FromRepo] == nil:
		return errRepoNotFound(false)
	case s.repos[to] != nil:
		return fail(http.StatusConflict, "%s exists", to)
	}
	s.rename(q.FromRepo, to)
	writeJSON(w, http.StatusOK, map[string]any{"url": s.URL + "/" + to})
	return nil
}

// settings answers PUT /api/models/{id}/settings.
func (s *Server) settings(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessWrite)
	if err != nil {
		return err
	}
	var q struct {
		Gated      any    `json:"gated"`
		Private    *bool  `json:"private"`
		Visibility string `json:"visibility"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch q.Gated {
	case "auto", "manual":
		rp.opts.Gated = q.Gated.(string)
	case false:
		rp.opts.Gated = ""
	case nil:
	default:
		return fail(http.StatusBadRequest, "gated must be \"auto\", \"manual\" or false")
	}
	if q.Private != nil {
		rp.opts.Private = *q.Private
	}
	if q.Visibility != "" {
		rp.opts.Private = q.Visibility == "private"
	}
	writeJSON(w, http.StatusOK, map[string]any{"private": rp.opts.Private, "gated": rp.opts.Gated})
	return nil
}

// createBranch answers POST /api/models/{id}/branch/{branch}.
func (s *Server) createBranch(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessWrite)
	if err != nil {
		return err
	}
	var q struct {
		StartingPoint string `json:"startingPoint"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	branch := r.PathValue("branch")
	if strings.HasPrefix(branch, "refs/") {
		return fail(http.StatusBadRequest, "Invalid branch name: %s", branch)
	}
	if q.StartingPoint == "" {
		q.StartingPoint = "main"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := "refs/heads/" + branch
	if rp.refs[ref] != "" {
		return fail(http.StatusConflict, "Reference already exists: %s", branch)
	}
	start := rp.resolve(q.StartingPoint)
	if start == nil {
		return errRevisionNotFound(q.StartingPoint)
	}
	rp.refs[ref] = start.oid
	w.WriteHeader(http.StatusOK)
	return nil
}

// deleteBranch answers DELETE /api/models/{id}/branch/{branch}.
func (s *Server) deleteBranch(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessWrite)
	if err != nil {
		return err
	}
	branch := r.PathValue("branch")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case branch == "main":
		return fail(http.StatusForbidden, "Cannot delete branch: main")
	case rp.refs["refs/heads/"+branch] == "":
		return errRevisionNotFound(branch)
	}
	delete(rp.refs, "refs/heads/"+branch)
	w.WriteHeader(http.StatusOK)
	return nil
}

// redirectRenamed sends requests for an old repo name to the new one, with a
// relative Location as the hub does.
func (s *Server) redirectRenamed(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	renames := maps.Clone(s.renames)
	s.mu.Unlock()
	path := r.URL.EscapedPath()
	for from, to := range renames {
		for _, prefix := range []string{"/api/models/", "/api/resolve-cache/models/", "/"} {
			rest, ok := strings.CutPrefix(path, prefix+from)
			if !ok || rest != "" && rest[0] != '/' && !strings.HasPrefix(rest, ".git/") {
				continue
			}
			location := prefix + to + rest
			if r.URL.RawQuery != "" {
				location += "?" + r.URL.RawQuery
			}
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}
	}
	return false
}
