package hubtest

import (
	"net/http"
	"slices"
	"strings"
)

// User is whom a token stands for.
type User struct {
	Name     string
	Orgs     []string // organisations it may write to
	ReadOnly bool     // the token has role "read"
	All      bool     // may read and write everything, gated repos included
	CanRead  []string // private repos of others that it may see
	Granted  []string // gated repos that it was let into
}

func (u *User) owns(namespace string) bool {
	return u.All || u.Name == namespace || slices.Contains(u.Orgs, namespace)
}

func (u *User) sees(rp *repo) bool {
	return u.owns(rp.namespace()) || slices.Contains(u.CanRead, rp.name)
}

// access is what a route needs of a repo.
type access int

const (
	accessInfo   access = iota // names, sizes, hashes: allowed on gated repos
	accessFiles                // content
	accessUpload               // a known user who may read; enough for a pull request
	accessWrite                // change branches and settings
)

// user returns who sends the request, nil for nobody.
func (s *Server) user(r *http.Request) (*User, error) {
	h := r.Header.Get("Authorization")
	if h == "" {
		return nil, nil
	}
	token, ok := strings.CutPrefix(h, "Bearer ")
	if !ok || token == "" {
		return nil, errBadToken()
	}
	if len(s.cfg.users) == 0 {
		return &s.cfg.anyUser, nil
	}
	u, ok := s.cfg.users[token]
	if !ok {
		return nil, errBadToken()
	}
	return &u, nil
}

func errBadToken() *apiError {
	return fail(http.StatusUnauthorized, "Invalid credentials in Authorization header")
}

// knownUser is user for routes that need a login.
func (s *Server) knownUser(r *http.Request) (*User, error) {
	u, err := s.user(r)
	if err == nil && u == nil {
		err = fail(http.StatusUnauthorized, "Invalid username or password.")
	}
	return u, err
}

// repoFor finds the repo that the path values ns and name stand for and checks
// that the caller may do what the route does.
func (s *Server) repoFor(r *http.Request, want access) (*repo, *User, error) {
	u, err := s.user(r)
	if err != nil {
		return nil, nil, err
	}
	name := r.PathValue("name")
	if git := r.PathValue("git"); git != "" {
		name = strings.TrimSuffix(git, ".git")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.repos[r.PathValue("ns")+"/"+name]
	if rp == nil || rp.opts.Private && (u == nil || !u.sees(rp)) {
		return nil, nil, errRepoNotFound(u == nil)
	}
	return rp, u, s.permit(rp, u, want)
}

func (s *Server) permit(rp *repo, u *User, want access) error {
	switch {
	case rp.opts.Disabled:
		return fail(http.StatusForbidden, "Access to this resource is disabled.")
	case want >= accessFiles && rp.opts.Gated != "":
		if err := s.permitGated(rp, u); err != nil {
			return err
		}
	}
	switch {
	case want >= accessUpload && u == nil:
		return fail(http.StatusUnauthorized, "Invalid username or password.")
	case want == accessWrite && !u.owns(rp.namespace()):
		return fail(http.StatusForbidden, "You don't have the rights to write to %s", rp.name)
	case want >= accessUpload && u.ReadOnly:
		return fail(http.StatusForbidden, "You must use a write token to upload to a repository.")
	}
	return nil
}

func (s *Server) permitGated(rp *repo, u *User) error {
	if u == nil {
		return &apiError{status: http.StatusUnauthorized, code: codeGatedRepo,
			message: "Access to model " + rp.name + " is restricted. You must have access to it and be authenticated to access it. Please log in."}
	}
	if u.owns(rp.namespace()) || slices.Contains(u.Granted, rp.name) {
		return nil
	}
	return &apiError{status: http.StatusForbidden, code: codeGatedRepo,
		message: "Access to model " + rp.name + " is restricted and you are not in the authorized list. Visit " + s.URL + "/" + rp.name + " to ask for access."}
}

func (s *Server) authCheckRead(w http.ResponseWriter, r *http.Request) error {
	return s.authCheck(w, r, accessFiles)
}

func (s *Server) authCheckWrite(w http.ResponseWriter, r *http.Request) error {
	return s.authCheck(w, r, accessWrite)
}

func (s *Server) authCheck(w http.ResponseWriter, r *http.Request, want access) error {
	if _, _, err := s.repoFor(r, want); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"success": true})
	return nil
}

func (s *Server) whoami(w http.ResponseWriter, r *http.Request) error {
	u, err := s.knownUser(r)
	if err != nil {
		return err
	}
	orgs := []map[string]any{}
	for _, o := range u.Orgs {
		orgs = append(orgs, map[string]any{"type": "org", "name": o, "fullname": o, "roleInOrg": "write"})
	}
	role := "write"
	if u.ReadOnly {
		role = "read"
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"type": "user", "id": "hubtest-" + u.Name, "name": u.Name, "fullname": u.Name,
		"email": u.Name + "@example.org", "isPro": false, "canPay": false, "orgs": orgs,
		"auth": map[string]any{"type": "access_token",
			"accessToken": map[string]any{"displayName": "test", "role": role}},
	})
	return nil
}
