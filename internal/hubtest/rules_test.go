package hubtest

import (
	"fmt"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"net/http"
	"strings"
	"testing"
)

// A ruleCase are two requests: the Hub takes the first, and refuses the second by the rule. %s in a
// body stands for text in the first, or the second, which makes the difference.
type ruleCase struct {
	method, path, token string
	body                string
	good, bad           string
	inside              bool // the refusal is of one object inside a successful answer
}

// TestRules breaks each rule by one request that differs in nothing else from one that keeps to it,
// and compares the whole answer with the table.
func TestRules(t *testing.T) {
	small := []Option{
		WithUser("tok", User{Name: "me", Orgs: []string{"org"}}), WithUser("other", User{Name: "you"}),
		WithUser("reader", User{Name: "me", ReadOnly: true}),
		WithLimit("files in a folder", 4), WithLimit("large files of a commit", 6),
		WithLimit("bytes of a commit", 4000), WithLimit("size of a file in git", 1000),
		WithLimit("size of a file", 1_000_000), WithLimit("private storage", 100),
		WithLFSThreshold(1000),
	}
	const commit, batch, create = "/api/models/me/m/commit/main", "/me/m.git/info/lfs/objects/batch", "/api/repos/create"
	object := func(size int64) string {
		return fmt.Sprintf(`{"operation":"upload","transfers":["basic"],"objects":[{"oid":%q,"size":%d}]}`, world.Sum([]byte("x")), size)
	}
	files := func(n, size int, dir string) string {
		var lines []string
		for i := range n {
			lines = append(lines, fileLine(fmt.Sprintf("%s%d", dir, i), strings.Repeat("x", size)))
		}
		return commitBody(lines...)
	}
	get := func(repo, token string) ruleCase {
		return ruleCase{"GET", "/%s/resolve/main/README.md", token, "", "me/m", repo, false}
	}
	cases := map[string]ruleCase{
		"files in a folder":       {"POST", commit, "tok", "%s", files(3, 1, "d/"), files(3, 1, "d/") + "\n" + fileLine("d/a/b", "x") + "\n" + fileLine("d/c/d", "x"), false},
		"large files of a commit": {"POST", commit, "tok", "%s", files(3, 1, "d/"), files(3, 1, "d/") + "\n" + files(4, 1, "d/e")[len(commitBody()):], false},
		"bytes of a commit":       {"POST", commit, "tok", "%s", files(3, 600, "d/"), files(3, 1000, "d/"), false},
		"size of a file in git":   {"POST", commit, "tok", "%s", files(1, 1000, "d/"), files(1, 1001, "d/"), false},
		"size of a file":          {"POST", batch, "tok", "%s", object(1_000_000), object(1_000_001), true},
		"name of a file": {"POST", commit, "tok", "%s", commitBody(fileLine("d/"+strings.Repeat("n", 255), "x")),
			commitBody(fileLine("d/"+strings.Repeat("n", 256), "x")), false},
		"name of a repo":              {"POST", create, "tok", `{"name":"%s"}`, strings.Repeat("n", 96), strings.Repeat("n", 97), false},
		"values of a card":            {"POST", commit, "tok", "%s", commitBody(fileLine("README.md", "---\nlicense: mit\n---\n")), commitBody(fileLine("README.md", "---\nlicense: mine\n---\n")), false},
		"private storage":             {"POST", "/me/closed.git/info/lfs/objects/batch", "tok", "%s", object(90), object(95), true},
		"no right in an organization": {"POST", create, "tok", `{"name":"n","organization":"%s"}`, "org", "theirs", false},
		"no right to write":           {"GET", "/api/models/%s/auth-check/write", "tok", "", "me/m", "theirs/m", false},
		"a token for reading":         {"GET", "/api/models/me/m/auth-check/write", "%s", "", "tok", "reader", false},
		"gated, without a token":      get("them/gated", ""),
		"gated":                       get("them/gated", "tok"),
		"disabled":                    get("me/disabled", ""),
		"renamed":                     get("me/old", ""),
	}
	for _, r := range Rules {
		c, known := cases[r.Name]
		if !known || !strings.Contains(r.Source, "https://") || r.Limit < 0 {
			t.Errorf("%s: no case, or no source", r.Name)
			continue
		}
		s := Start(t, small...)
		readme := map[string][]byte{"README.md": []byte("# x\n"), ".gitattributes": nil}
		s.AddRepo("me/m", readme)
		s.AddRepo("theirs/m", readme)
		s.AddRepo("me/closed", map[string][]byte{"w.bin": []byte("tenbytes!!")}, Private())
		s.AddRepo("them/gated", readme, Gated("manual"))
		s.AddRepo("me/disabled", readme, Disabled())
		s.AddRepo("me/old", readme)
		s.Rename("me/old", "me/new")
		send := func(which string) answer {
			fill := strings.NewReplacer("%s", which)
			return ask(t, c.method, s.URL+fill.Replace(c.path), fill.Replace(c.token), fill.Replace(c.body))
		}
		if bad := send(c.bad); !answers(bad, r, c.inside) {
			t.Errorf("%s: refused with %d %q: %s", r.Name, bad.status, bad.code(), bad.body)
		}
		if good := send(c.good); good.status != http.StatusOK || strings.Contains(good.body, `"error"`) {
			t.Errorf("%s: keeping to it: %d %s", r.Name, good.status, good.body)
		}
	}
	if len(cases) != len(Rules) {
		t.Errorf("%d cases for %d rules", len(cases), len(Rules))
	}
}

// answers reports whether an answer is the rule's, as far as its text has no verbs.
func answers(a answer, r *Rule, inside bool) bool {
	text, _, _ := strings.Cut(r.Message, "%")
	if inside {
		return a.status == http.StatusOK && strings.Contains(a.body, fmt.Sprintf(`"code":%d,"message":%q`, r.Status, r.Message))
	}
	said := strings.Contains(a.body, strings.Trim(fmt.Sprintf("%q", text), `"`)) && strings.HasPrefix(a.header.Get("X-Error-Message"), text)
	return a.status == r.Status && a.code() == r.Code && (said || r.Name == "values of a card")
}
