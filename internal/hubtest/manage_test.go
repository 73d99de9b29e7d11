package hubtest

import (
	"net/http"
	"strings"
	"testing"
)

func TestCreateRepo(t *testing.T) {
	s := Start(t, WithUser("tok", User{Name: "me", Orgs: []string{"team"}}))
	for _, tc := range []struct {
		body   string
		status int
	}{
		{`{"name":"m","organization":"me"}`, 200},
		{`{"name":"m"}`, 409},
		{`{"name":"m2","organization":"team","visibility":"private"}`, 200},
		{`{"name":"m3","organization":"team","private":true,"type":"model"}`, 200},
		{`{"name":"m","organization":"others"}`, 403},
		{`{"name":"a--b"}`, 400},
		{`{"name":"x.git"}`, 400},
		{`{"name":"-x"}`, 400},
		{`{"name":"` + strings.Repeat("x", 97) + `"}`, 400},
		{`{"name":"d","type":"dataset"}`, 400},
		{`{`, 400},
	} {
		resp, body := do(t, "POST", s.URL+"/api/repos/create", "tok", tc.body)
		want(t, resp, body, tc.status, "")
		if tc.status == 409 && decode[map[string]any](t, body)["url"] != s.URL+"/me/m" {
			t.Errorf("409 without url: %s", body)
		}
	}
	for name, private := range map[string]bool{"me/m": false, "team/m2": true, "team/m3": true} {
		if got, _ := s.Visibility(name); got != private {
			t.Errorf("%s: private %t", name, got)
		}
	}
	if c := s.Commits("me/m", "main"); len(c) != 1 || c[0].Files[attributesFile].Size == 0 {
		t.Errorf("a new repo has one commit with .gitattributes: %+v", c)
	}
	resp, body := do(t, "POST", s.URL+"/api/repos/create", "", `{"name":"m"}`)
	want(t, resp, body, http.StatusUnauthorized, "")
}

func TestBranches(t *testing.T) {
	s := Start(t)
	first := s.AddRepo("me/m", map[string][]byte{"a": []byte("1")})
	s.Push("me/m", "main", map[string][]byte{"a": []byte("2")})
	branch := s.URL + "/api/models/me/m/branch/"
	for _, tc := range []struct {
		method, name, body string
		status             int
		code               string
	}{
		{"POST", "work%2F1", `{}`, 200, ""},
		{"POST", "work%2F1", `{}`, 409, ""},
		{"POST", "old", `{"startingPoint":"` + first + `"}`, 200, ""},
		{"POST", "bad", `{"startingPoint":"nope"}`, 404, codeRevisionNotFound},
		{"POST", "refs%2Fpr%2F1", `{}`, 400, ""},
		{"DELETE", "work%2F1", ``, 200, ""},
		{"DELETE", "work%2F1", ``, 404, codeRevisionNotFound},
		{"DELETE", "main", ``, 403, ""},
	} {
		resp, body := do(t, tc.method, branch+tc.name, "tok", tc.body)
		want(t, resp, body, tc.status, tc.code)
	}
	if s.Head("me/m", "old") != first || s.Head("me/m", "work/1") != "" {
		t.Errorf("refs: %v", s.Refs("me/m"))
	}
	resp, body := do(t, "GET", s.URL+"/api/models/me/m/refs", "", "")
	want(t, resp, body, 200, "")
	refs := decode[map[string][]struct{ Name, Ref, TargetCommit string }](t, body)
	if len(refs["branches"]) != 2 || refs["branches"][1].TargetCommit != first {
		t.Errorf("refs: %v", refs)
	}
}

func TestSettings(t *testing.T) {
	s := Start(t)
	s.AddRepo("me/m", nil)
	url := s.URL + "/api/models/me/m/settings"
	for visibility, wanted := range map[string]int{"private": 200, "public": 200, "sometimes": 400, "": 400} {
		before, _ := s.Visibility("me/m")
		resp, body := do(t, "PUT", url, "tok", `{"visibility":"`+visibility+`"}`)
		want(t, resp, body, wanted, "")
		if private, _ := s.Visibility("me/m"); private != (visibility == "private" || wanted == 400 && before) {
			t.Errorf("%q: private %t", visibility, private)
		}
	}
}

func TestRenameRedirects(t *testing.T) {
	s := Start(t)
	s.AddRepo("old/m", map[string][]byte{"a b.txt": []byte("hi")})
	resp, body := do(t, "POST", s.URL+"/api/repos/move", "tok", `{"fromRepo":"old/m","toRepo":"new/m","type":"model"}`)
	want(t, resp, body, 200, "")
	s.Alias("m", "new/m")
	for from, to := range map[string]string{
		"/api/models/old/m":                      "/api/models/new/m",
		"/api/models/m":                          "/api/models/new/m",
		"/api/models/old/m/tree/refs%2Fpr%2F1?x": "/api/models/new/m/tree/refs%2Fpr%2F1?x",
		"/old/m/resolve/main/a%20b.txt":          "/new/m/resolve/main/a%20b.txt",
		"/old/m.git/info/lfs/objects/batch":      "/new/m.git/info/lfs/objects/batch",
	} {
		resp, body := do(t, "GET", s.URL+from, "", "")
		want(t, resp, body, http.StatusTemporaryRedirect, "")
		if got := resp.Header.Get("Location"); got != to {
			t.Errorf("%s leads to %s, want %s", from, got, to)
		}
	}
	resp, body = do(t, "GET", s.URL+"/api/models/old/m2", "", "")
	want(t, resp, body, 401, codeRepoNotFound)
	s.AddRepo("old/m", nil) // a new repo of the old name ends the redirect
	resp, body = do(t, "GET", s.URL+"/api/models/old/m", "", "")
	want(t, resp, body, 200, "")
}

func TestDuplicate(t *testing.T) {
	s := Start(t, WithXetHashes())
	data := []byte("weights")
	s.AddRepo("a/src", map[string][]byte{"w.safetensors": data})
	s.AddRepo("b/dst", nil)
	call := func(hash string) (int, string) {
		q := `{"target":{"type":"model","name":"b/dst"},"files":[{"xetHash":"` + hash + `","sha256":"` + sha(data) + `","filename":"w.safetensors"}]}`
		resp, body := do(t, "POST", s.URL+"/api/models/a/src/lfs-files/duplicate", "tok", q)
		want(t, resp, body, 200, "")
		return len(decode[struct{ Failed []any }](t, body).Failed), body
	}
	if n, body := call("wrong"); n != 1 || s.Holds("b/dst", sha(data)) {
		t.Errorf("wrong hash: %s", body)
	}
	if n, body := call(xetHash(sha(data))); n != 0 || !s.Holds("b/dst", sha(data)) {
		t.Errorf("right hash: %s", body)
	}
	resp, body := do(t, "POST", s.URL+"/api/models/b/dst/commit/main", "tok", commitBody(lfsLine("w.safetensors", data)))
	want(t, resp, body, 200, "")
}

func TestValidateYAML(t *testing.T) {
	s := Start(t)
	for card, status := range map[string]int{
		"# no front matter\n":                                                         200,
		"---\nlicense: mit\n---\n":                                                    200,
		"---\nlicense: other\n---\n":                                                  400,
		"---\nlicense: other\nlicense_name: x\n---\n":                                 200,
		"---\ntags:\n- 1.0\n---\n":                                                    400,
		"---\nbase_model: a/b\nbase_model_relation: quantized\n---\n":                 200,
		"---\nbase_model: a/b/c\n---\n":                                               400,
		"---\nbase_model_relation: copied\n---\n":                                     400,
		"---\nlicense: [a\n---\n":                                                     400,
		"---\nlanguage:\n- no\n---\n":                                                 200, // YAML 1.2: a string
		"---\nlanguage:\n- en\nlibrary_name: transformers\npipeline_tag: x\n---\nhi ": 200,
	} {
		q := `{"repoType":"model","content":` + jsonText(card) + `}`
		resp, body := do(t, "POST", s.URL+"/api/validate-yaml", "", q)
		if resp.StatusCode != status {
			t.Errorf("%q: got %d, want %d: %s", card, resp.StatusCode, status, body)
		}
		if v := decode[map[string][]any](t, body); v["errors"] == nil || v["warnings"] == nil {
			t.Errorf("%q: both lists must be there: %s", card, body)
		}
	}
}
