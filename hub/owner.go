package hub

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An owner is the answer of the route whoami-v2, as far as it counts here. Orgs and Auth vary from
// hub to hub, so what has another form says nothing.
type owner struct {
	Name       string
	Orgs, Auth json.RawMessage
}

// A membership is an organization of the owner, with the role there and in its resource groups:
// https://huggingface.co/docs/hub/organizations-security,
// https://huggingface.co/docs/hub/security-resource-groups.
type membership struct {
	Name           string
	RoleInOrg      string
	ResourceGroups []struct{ Role string }
}

// tokenRights are what a token may do: https://huggingface.co/docs/hub/security-tokens. The form of
// Scoped is that of https://github.com/huggingface/dataset-viewer/pull/3067 and of trackio's check
// for write access (https://github.com/gradio-app/trackio).
type tokenRights struct {
	AccessToken struct {
		Role        string // "read", "write", "fineGrained"
		FineGrained *struct {
			Global []string
			Scoped []scope
		}
	}
}

// A scope is what a fine-grained token may do with an entity: a user's or an organization's repos,
// or one repo.
type scope struct {
	Entity      struct{ Type, Name string }
	Permissions []string
}

// lacks returns the hub's answer in words and why the token may not write to a repo, or nil if the
// answer doesn't say so. That an organization isn't listed says nothing: hfd lists none.
func (o owner) lacks(repo string) (words string, cause error) {
	var rights tokenRights
	_ = json.Unmarshal(o.Auth, &rights)
	namespace, _, _ := strings.Cut(repo, "/")
	token := rights.AccessToken
	switch {
	case token.Role == "read":
		return "its role is read", errReadToken
	case token.Role == "fineGrained" && token.FineGrained != nil &&
		!writes(token.FineGrained.Global) &&
		!slices.ContainsFunc(token.FineGrained.Scoped, func(s scope) bool { return s.allows(repo, namespace) }):
		return fmt.Sprintf("it's fine-grained, without repo.write for %s", namespace), ErrForbidden
	}
	var orgs []membership
	_ = json.Unmarshal(o.Orgs, &orgs)
	for _, m := range orgs {
		if strings.EqualFold(m.Name, namespace) && m.onlyReads() {
			return fmt.Sprintf("the role in %s is %s", namespace, m.RoleInOrg), ErrNamespace
		}
	}
	return "", nil
}

// writes reports whether one of the permissions may be enough to change a repo: repo.write, or a
// part of it, such as repo.content.write.
func writes(permissions []string) bool {
	return slices.ContainsFunc(permissions, func(p string) bool {
		return strings.HasPrefix(p, "repo.") && strings.HasSuffix(p, ".write")
	})
}

// allows reports whether the scope may let a token write to a repo. A resource group doesn't say
// whose repos are in it.
func (s scope) allows(repo, namespace string) bool {
	switch {
	case !writes(s.Permissions):
		return false
	case s.Entity.Name == "":
		return true
	}
	switch s.Entity.Type {
	case "user", "org":
		return strings.EqualFold(s.Entity.Name, namespace)
	case "model":
		return strings.EqualFold(s.Entity.Name, repo)
	case "dataset", "space", "bucket", "kernel", "collection":
		return false
	}
	return true
}

// onlyReads reports whether the organization and all of its resource groups let the member only
// read.
func (m membership) onlyReads() bool {
	reads := func(role string) bool { return role == "read" || role == "no_access" }
	for _, g := range m.ResourceGroups {
		if !reads(g.Role) {
			return false
		}
	}
	return reads(m.RoleInOrg)
}
