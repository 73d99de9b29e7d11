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
	// organizations in which it has the role read
	Reads []string
	// what a fine-grained token may write to: namespaces and models; nil for a token with the role
	// write
	Writes []string
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

// grants reports whether the token may write to a repo if its owner may.
func (u *User) grants(repo string) bool {
	namespace, _, _ := strings.Cut(repo, "/")
	return u.Writes == nil || slices.Contains(u.Writes, namespace) || slices.Contains(u.Writes, repo)
}

func (u *User) sees(rp *repo) bool {
	return u.writes(rp) || slices.Contains(u.CanRead, rp.name)
}

func (u *User) writes(rp *repo) bool {
	return u.owns(rp.namespace()) && (!u.Made || rp.maker == u.Name) && u.grants(rp.name) ||
		u.Only == rp.name
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

// whoami answers in the form that https://github.com/huggingface/dataset-viewer/pull/3067 and
// https://github.com/gradio-app/trackio read.
func whoami(c *call) (any, error) {
	u, orgs := c.user, []map[string]any{}
	for role, names := range map[string][]string{"write": u.Orgs, "read": u.Reads} {
		for _, o := range names {
			orgs = append(orgs,
				map[string]any{"type": "org", "name": o, "fullname": o, "roleInOrg": role})
		}
	}
	token := map[string]any{"displayName": "test", "role": "write"}
	if u.ReadOnly {
		token["role"] = "read"
	} else if u.Writes != nil {
		scoped := []map[string]any{}
		for _, name := range u.Writes {
			kind := "org"
			if strings.Contains(name, "/") {
				kind = "model"
			} else if name == u.Name {
				kind = "user"
			}
			scoped = append(scoped, map[string]any{"entity": map[string]string{"type": kind, "name": name},
				"permissions": []string{"repo.content.read", "repo.write"}})
		}
		token["role"] = "fineGrained"
		token["fineGrained"] = map[string]any{"canReadGatedRepos": false, "global": []string{},
			"scoped": scoped}
	}
	return map[string]any{
		"type": "user", "id": "hubtest-" + u.Name, "name": u.Name, "fullname": u.Name,
		"email": u.Name + "@example.org", "isPro": false, "canPay": false, "orgs": orgs,
		"auth": map[string]any{"type": "access_token", "accessToken": token},
	}, nil
}
