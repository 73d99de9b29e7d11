package hubtest

import (
	"fmt"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"strings"
	"testing"
)

// TestRoutes checks the answers of a repo's routes, one after the other. %s stands for the first
// commit.
func TestRoutes(t *testing.T) {
	s := Start(t, WithUser("tok", User{Name: "me"}))
	data := []byte("weights")
	first := s.AddRepo("me/m", map[string][]byte{"README.md": []byte("---\npipeline_tag: x\n---\n"), "w.safetensors": data})
	s.AddRepo("me/old", map[string][]byte{"a b.txt": []byte("hi")})
	s.Rename("me/old", "me/new")
	const create, branch, card = "/api/repos/create", "/api/models/me/m/branch/", "/api/validate-yaml"
	for _, tc := range []struct {
		method, path, body string
		status             int
		holds              string // a part of body or header
	}{
		{"GET", "/api/models/me/m/revision/%s?blobs=true", "", 200, `"pipeline_tag":"x"`},
		{"GET", "/api/models/me/m?blobs=true", "", 200, `"sha256":"` + world.Sum(data)},
		{"GET", "/api/models/me/m/tree/main?cursor=x", "", 400, ""},
		{"HEAD", "/api/models/me/m", "", 200, ""},
		{"POST", create, `{"name":"n"}`, 200, "/me/n"},
		{"POST", create, `{"name":"n","organization":"me"}`, 409, "/me/n"},
		{"POST", create, `{"name":"n1","organization":"me","visibility":"private"}`, 200, `"private":true`},
		{"POST", create, `{"name":"n","organization":"others"}`, 403, ""},
		{"POST", create, `{"name":"a--b"}`, 400, ""},
		{"POST", create, `{"name":"d","type":"dataset"}`, 400, ""},
		{"POST", branch + "work%2F1", `{"startingPoint":"%s"}`, 200, ""},
		{"POST", branch + "work%2F1", `{}`, 409, ""},
		{"GET", "/api/models/me/m/refs", "", 200, `"name":"work/1","ref":"refs/heads/work/1","targetCommit":"%s"`},
		{"POST", branch + "bad", `{"startingPoint":"nope"}`, 404, codeRevisionNotFound},
		{"POST", branch + "refs%2Fpr%2F1", `{}`, 400, ""},
		{"DELETE", branch + "work%2F1", ``, 200, ""},
		{"DELETE", branch + "work%2F1", ``, 404, codeRevisionNotFound},
		{"GET", "/api/models/me/old/tree/refs%2Fpr%2F1?x", "", 307, "/api/models/me/new/tree/refs%2Fpr%2F1?x"},
		{"GET", "/me/old/resolve/main/a%20b.txt", "", 307, "/me/new/resolve/main/a%20b.txt"},
		{"GET", "/me/old.git/info/lfs/objects/batch", "", 307, "/me/new.git/info/lfs/objects/batch"},
		{"POST", create, `{"name":"old"}`, 200, ""},
		// a new repo of the old name ends the redirect
		{"GET", "/api/models/me/old", "", 200, `"id":"me/old"`},
		{"PUT", "/api/models/me/old/settings", `{"visibility":"private"}`, 200, `"private":true`},
		{"GET", "/api/models/me/old", "", 200, `"private":true`},
		{"PUT", "/api/models/me/old/settings", `{"visibility":"hidden"}`, 400, ""},
		{"DELETE", "/api/repos/delete", `{"name":"old","organization":"others"}`, 403, ""},
		{"DELETE", "/api/repos/delete", `{"name":"old","organization":"me"}`, 200, ""},
		{"DELETE", "/api/repos/delete", `{"name":"old","organization":"me"}`, 404, "RepoNotFound"},
		{"GET", "/api/models/me/old", "", 404, "RepoNotFound"},
		// no is text in YAML 1.2
		{"POST", card, `{"content":"---\nlicense: other\nlicense_name: x\nlanguage:\n- no\n---\n"}`, 200, ""},
		{"POST", card, `{"content":"---\nlicense: other\n---\n"}`, 400, "license_name"},
	} {
		fill := strings.NewReplacer("%s", first)
		a := ask(t, tc.method, s.URL+fill.Replace(tc.path), "tok", fill.Replace(tc.body))
		if said := fmt.Sprint(a.header, a.body); a.status != tc.status || !strings.Contains(said, fill.Replace(tc.holds)) {
			t.Errorf("%s %s %s: %d %s", tc.method, tc.path, tc.body, a.status, said)
		}
	}
}

// TestPreupload checks which files go to git and which to LFS, and what a branch holds already.
func TestPreupload(t *testing.T) {
	s := Start(t, WithLFSThreshold(1000))
	s.AddRepo("me/m", map[string][]byte{"same.txt": []byte("x"), "w.safetensors": []byte("w"), ".gitignore": []byte("*.tmp\n")})
	for _, tc := range []struct {
		path, sample string
		size         int
		want         string // uploadMode, shouldIgnore, oid
	}{
		{"same.txt", "eA==", 1, "regular false " + blobID([]byte("x"))},
		{"w.safetensors", "dw==", 1, "lfs false " + world.Sum([]byte("w"))},
		{"empty.safetensors", "", 0, "regular false "},
		{"big.txt", "eA==", 1000, "lfs false "},
		{"binary.dat", "AAE=", 2, "lfs false "},
		{"deep/x.tmp", "eA==", 1, "regular true "},
	} {
		a := must(t, "POST", s.URL+"/api/models/me/m/preupload/main", "tok", fmt.Sprintf(`{"files":[{"path":%q,"sample":%q,"size":%d}]}`, tc.path, tc.sample, tc.size))
		got := decode[struct {
			Files []struct {
				UploadMode, OID string
				ShouldIgnore    bool
			}
			CommitOid string
		}](t, a.body)
		f := got.Files[0]
		if said := fmt.Sprint(f.UploadMode, " ", f.ShouldIgnore, " ", f.OID); said != tc.want || got.CommitOid != s.Head("me/m", "main") {
			t.Errorf("%s: %s, want %s", tc.path, said, tc.want)
		}
	}
}

// TestCommitErrors checks that a commit with any error changes nothing.
func TestCommitErrors(t *testing.T) {
	s := Start(t)
	data := []byte("weights")
	s.AddRepo("me/m", map[string][]byte{"old.safetensors": data, "d/x.txt": []byte("x")})
	head := s.Head("me/m", "main")
	for name, tc := range map[string]struct {
		body   string
		status int
	}{
		"unknown object":    {commitBody(lfsLine("new.safetensors", []byte("never uploaded"))), 400},
		"wrong size":        {commitBody(strings.Replace(lfsLine("p", data), `"size":7`, `"size":8`, 1)), 400},
		"bad card":          {commitBody(fileLine("README.md", "---\ntags: 7\n---\n")), 400},
		"missing file":      {commitBody(deleteLine("none")), 404},
		"climbing path":     {commitBody(fileLine("../x", "")), 400},
		"twice":             {commitBody(fileLine("x", "1"), fileLine("x", "2")), 400},
		"file and folder":   {commitBody(fileLine("d", "1")), 400},
		"unknown operation": {commitBody(`{"key":"copyFile","value":{"path":"x"}}`), 400},
		"no header":         {fileLine("x", ""), 400},
		"stale parent":      {`{"key":"header","value":{"summary":"s","parentCommit":"` + strings.Repeat("0", 40) + `"}}`, 412},
	} {
		if a := ask(t, "POST", s.URL+"/api/models/me/m/commit/main", "tok", tc.body); a.status != tc.status {
			t.Errorf("%s: got %d, want %d: %s", name, a.status, tc.status, a.body)
		}
	}
	if s.Head("me/m", "main") != head {
		t.Error("a refused commit moved the branch")
	}
	if a := ask(t, "POST", s.URL+"/api/models/me/m/commit/nope", "tok", commitBody()); a.code() != codeRevisionNotFound {
		t.Errorf("a commit to no branch: %d %s", a.status, a.body)
	}
}
