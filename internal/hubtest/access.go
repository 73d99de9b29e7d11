package hubtest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// A User is the owner of a token.
type User struct {
	Name string
	Orgs []string // organizations it may write to
	// the one repo the token may read and write, of any owner; "" for the owner's repos
	Only string
	// only repos it created, as an OAuth app with the scope contribute-repos
	Made     bool
	ReadOnly bool     // the token has role "read"
	All      bool     // may read and write everything, including gated repos
	CanRead  []string // private repos of others that it may see
	Granted  []string // gated repos it was let into
	// has accepted the terms of every gated repo: those with "auto" let it in, like any stranger
	Agrees bool
}

func (u *User) owns(namespace string) bool {
	return u.All || u.Name == namespace || slices.Contains(u.Orgs, namespace)
}

func (u *User) sees(rp *repo) bool {
	return u.writes(rp) || slices.Contains(u.CanRead, rp.name)
}

func (u *User) writes(rp *repo) bool {
	return u.owns(rp.namespace()) && (!u.Made || rp.maker == u.Name) || u.Only == rp.name
}

// An access is the right that a route takes.
type access int

const (
	accessNone  access = iota // nothing: the token isn't checked
	accessLogin               // a known user; the route isn't below a repo
	accessInfo                // names, sizes, hashes: allowed on gated repos
	accessFiles               // content
	accessWrite               // change branches and settings
)

var errNoLogin = fail(http.StatusUnauthorized, "Invalid username or password.")

// open finds the caller and the repo of the path values ns and name (or git), and checks that the
// caller may do what the route does.
func (s *Server) open(w http.ResponseWriter, r *http.Request, want access) (c *call, err error) {
	c = &call{Server: s, w: w, r: r}
	if want == accessNone {
		return c, nil
	}
	if c.user, err = s.userOf(r); err != nil {
		return nil, err
	}
	if want == accessLogin {
		if c.user == nil {
			return nil, errNoLogin
		}
		return c, nil
	}
	name := cmp.Or(r.PathValue("name"), strings.TrimSuffix(r.PathValue("git"), ".git"))
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	c.repo = s.repos[r.PathValue("ns")+"/"+name]
	if c.repo == nil || c.repo.opts.Private && (c.user == nil || !c.user.sees(c.repo)) {
		return nil, errRepoNotFound(c.user == nil)
	}
	return c, c.permit(c.repo, want)
}

// userOf returns the sender of the request, or nil.
func (s *Server) userOf(r *http.Request) (*User, error) {
	c := &s.cfg
	h := r.Header.Get("Authorization")
	if h == "" {
		return nil, nil
	}
	token, ok := strings.CutPrefix(h, "Bearer ")
	if u := s.trust.userOf(token, c.clock()); u != nil {
		return u, nil
	}
	if ok && token != "" && len(c.users)+len(c.publishers) == 0 {
		return &User{Name: "tester", All: true}, nil
	}
	if u, known := c.users[token]; ok && known {
		return &u, nil
	}
	return nil, fail(http.StatusUnauthorized, "Invalid credentials in Authorization header")
}

// permit checks the access of a caller who may see the repo.
func (c *call) permit(rp *repo, want access) error {
	u := c.user
	if rp.opts.Disabled {
		return ruleDisabled.refuse()
	}
	gated := rp.opts.Gated != "" && want >= accessFiles
	switch {
	case gated && u == nil:
		return ruleGatedAnonymous.refuse(rp.name)
	case gated && !u.writes(rp) && !slices.Contains(u.Granted, rp.name) &&
		!(u.Agrees && rp.opts.Gated == "auto"):
		return ruleGated.refuse(rp.name, c.URL+"/"+rp.name)
	case want == accessWrite && u == nil:
		return errNoLogin
	case want == accessWrite && !u.writes(rp):
		return ruleWrite.refuse(rp.name)
	case want == accessWrite && u.ReadOnly:
		return ruleReadToken.refuse()
	}
	return nil
}

func whoami(c *call) (any, error) {
	u, orgs, role := c.user, []map[string]any{}, "write"
	for _, o := range u.Orgs {
		orgs = append(orgs,
			map[string]any{"type": "org", "name": o, "fullname": o, "roleInOrg": "write"})
	}
	if u.ReadOnly {
		role = "read"
	}
	return map[string]any{
		"type": "user", "id": "hubtest-" + u.Name, "name": u.Name, "fullname": u.Name,
		"email": u.Name + "@example.org", "isPro": false, "canPay": false, "orgs": orgs,
		"auth": map[string]any{"type": "access_token",
			"accessToken": map[string]any{"displayName": "test", "role": role}},
	}, nil
}
