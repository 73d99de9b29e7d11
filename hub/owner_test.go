package hub

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestWhatTheOwnersAnswerSays checks which answers of whoami-v2 say that a token may not write to
// acme/m. What an answer doesn't say, or says in another form, refuses nothing.
func TestWhatTheOwnersAnswerSays(t *testing.T) {
	fine := func(scopes string) string {
		return `{"name": "me", "orgs": [{"name": "acme", "roleInOrg": "write"}],
			"auth": {"accessToken": {"role": "fineGrained", "fineGrained": {"global": ["discussion.write"], "scoped": [` + scopes + `]}}}}`
	}
	scope := func(kind, name, permission string) string {
		return `{"entity": {"_id": "1", "type": "` + kind + `", "name": "` + name + `"}, "permissions": ["repo.content.read", "` + permission + `"]}`
	}
	org := func(member string) string {
		return `{"name": "me", "orgs": [{"name": "ACME", ` + member + `}], "auth": {"accessToken": {"role": "write"}}}`
	}
	for answer, want := range map[string]error{
		`{"name": "me"}`: nil,
		`{"name": "me", "orgs": [], "auth": {"accessToken": {"role": "write"}}}`: nil, // hfd
		`{"name": "me", "orgs": {"acme": 1}, "auth": "oauth"}`:                   nil,
		`{"name": "me", "auth": {"accessToken": {"role": "read"}}}`:              errReadToken,
		`{"name": "me", "auth": {"accessToken": {"role": "fineGrained"}}}`:       nil,
		fine(""):                                                                          ErrForbidden,
		fine(scope("user", "me", "repo.write")):                                           ErrForbidden,
		fine(scope("org", "acme", "job.write")):                                           ErrForbidden,
		fine(scope("org", "Acme", "repo.write")):                                          nil,
		fine(scope("model", "acme/m", "repo.write")):                                      nil,
		fine(scope("model", "acme/n", "repo.write")):                                      ErrForbidden,
		fine(scope("space", "acme/m", "repo.write")):                                      ErrForbidden,
		fine(scope("org", "acme", "repo.content.write")):                                  nil,
		fine(scope("resource-group", "team", "repo.write")):                               nil,
		fine(scope("org", "", "repo.write")):                                              nil,
		strings.Replace(fine(""), "discussion.write", "repo.write", 1):                    nil,
		org(`"roleInOrg": "admin"`):                                                       nil,
		org(`"roleInOrg": "contributor"`):                                                 nil,
		org(`"roleInOrg": "visitor"`):                                                     nil, // KohakuHub
		org(`"roleInOrg": "read"`):                                                        ErrNamespace,
		org(`"roleInOrg": "no_access"`):                                                   ErrNamespace,
		org(`"roleInOrg": "read", "resourceGroups": [{"name": "team", "role": "write"}]`): nil,
		org(`"roleInOrg": "read", "resourceGroups": [{"name": "team", "role": "read"}]`):  ErrNamespace,
	} {
		var o owner
		if err := json.Unmarshal([]byte(answer), &o); err != nil || o.Name != "me" {
			t.Errorf("%s: %v", answer, err)
		}
		if words, got := o.lacks("acme/m"); !errors.Is(got, want) || (words != "") != (want != nil) {
			t.Errorf("%s: %v, want %v", answer, got, want)
		}
	}
}
