package hubtest

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"
)

// repoRequest is the body of the routes below /api/repos/.
type repoRequest struct {
	Name, Organization, Type string
	Private                  bool
	Visibility               string
}

var (
	goodName = regexp.MustCompile(`^[A-Za-z0-9_]$|^[A-Za-z0-9_][A-Za-z0-9._-]*[A-Za-z0-9_]$`)
	badName  = regexp.MustCompile(`--|\.\.|\.git$`)
)

// repoName checks a name and the caller's right to it, and returns it in full.
func (q repoRequest) repoName(u *User) (string, error) {
	ns, name := u.Name, q.Name
	if q.Organization != "" {
		ns = q.Organization
	} else if before, after, ok := strings.Cut(name, "/"); ok {
		ns, name = before, after
	}
	switch {
	case q.Type != "" && q.Type != "model":
		return "", fail(http.StatusBadRequest, "this hub holds models only, not %s", q.Type)
	case int64(len(name)) > ruleRepoName.Limit || !goodName.MatchString(name) || badName.MatchString(name):
		return "", ruleRepoName.refuse(name)
	case !u.owns(ns) || !u.grants(ns+"/"+name):
		return "", ruleNamespace.refuse(ns)
	case u.ReadOnly:
		return "", fail(http.StatusForbidden, "You must use a write token to create a repository.")
	}
	return ns + "/" + name, nil
}

func createRepo(c *call, q repoRequest) (any, error) {
	name, err := q.repoName(c.user)
	if err != nil {
		return nil, err
	}
	link := c.URL + "/" + name
	switch {
	case c.repos[name] != nil && c.cfg.MakesOver:
		return map[string]any{"url": link}, nil
	case c.repos[name] != nil:
		return nil, &refusal{status: http.StatusConflict,
			message: "You already created this model repo", url: link}
	}
	rp := c.newRepo(name)
	rp.maker = c.user.Name
	rp.opts.Private = q.Visibility == "private" || q.Visibility == "" && q.Private
	return map[string]any{"url": link, "name": name, "id": blobID([]byte(name))[:24],
		"private": rp.opts.Private}, c.land(name, nil, rp.resolve("main").Files)
}

// deleteRepo deletes a repo. Who may create it may delete it.
func deleteRepo(c *call, q repoRequest) (any, error) {
	name, err := q.repoName(c.user)
	if err != nil {
		return nil, err
	}
	if c.repos[name] == nil {
		return nil, errRepoNotFound(false)
	}
	delete(c.repos, name)
	return nil, nil
}

// changeSettings changes who may see a repo, as update_repo_settings of huggingface_hub asks.
func changeSettings(c *call, q struct{ Visibility string }) (any, error) {
	switch q.Visibility {
	case "private", "public":
		c.repo.opts.Private = q.Visibility == "private"
		return map[string]any{"private": c.repo.opts.Private}, nil
	}
	return nil, fail(http.StatusBadRequest, "visibility must be private or public, not %q", q.Visibility)
}

func createBranch(c *call, q struct{ StartingPoint string }) (any, error) {
	branch := c.r.PathValue("branch")
	if strings.HasPrefix(branch, "refs/") {
		return nil, fail(http.StatusBadRequest, "Invalid branch name: %s", branch)
	}
	ref := "refs/heads/" + branch
	if c.repo.refs[ref] != "" {
		return nil, fail(http.StatusConflict, "Reference already exists: %s", branch)
	}
	start := c.repo.resolve(cmp.Or(q.StartingPoint, "main"))
	if start == nil {
		return nil, errRevisionNotFound(q.StartingPoint)
	}
	c.repo.refs[ref] = start.OID
	return nil, nil
}

func deleteBranch(c *call) (any, error) {
	branch := c.r.PathValue("branch")
	switch {
	case branch == "main":
		return nil, fail(http.StatusForbidden, "Cannot delete branch: main")
	case c.repo.refs["refs/heads/"+branch] == "":
		return nil, errRevisionNotFound(branch)
	}
	delete(c.repo.refs, "refs/heads/"+branch)
	return nil, nil
}
