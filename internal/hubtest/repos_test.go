package hubtest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

type treeEntry struct {
	Type, Path, OID string
	Size            int64
	LFS             *struct{ OID string }
	XetHash         string
}

// TestTree: the pages of a tree list every file with git's hash of it, and of a large file the pointer's and its sha256.
func TestTree(t *testing.T) {
	s := Start(t, WithPageSize(4), WithXetHashes())
	files := LlamaModel(3, ModelOptions{ShardBytes: 100_000, ExtraFiles: true})
	s.AddRepo("org/m", files)
	var all []string
	for next := s.URL + "/api/models/org/m/tree/main?recursive=true&expand=false"; next != ""; {
		a := must(t, "GET", next, "", "")
		list := decode[[]treeEntry](t, a.body)
		for _, e := range list {
			if e.Type != "file" {
				continue
			}
			all = append(all, e.Path)
			stored := files[e.Path]
			if e.LFS != nil {
				stored = []byte(pointer(sha(stored), e.Size))
			}
			if e.Size != int64(len(files[e.Path])) || e.OID != blobID(stored) || e.LFS != nil && (e.LFS.OID != sha(files[e.Path]) || len(e.XetHash) != 64) {
				t.Errorf("%+v", e)
			}
		}
		next, _, _ = strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "<"), ">")
		if next != "" && len(list) != 4 {
			t.Errorf("%d entries on a page", len(list))
		}
	}
	if want := slices.Sorted(maps.Keys(files)); !slices.Equal(all, want) {
		t.Errorf("got %q, want %q", all, want)
	}
	// printf 'hello\n' | git hash-object --stdin
	if got := blobID([]byte("hello\n")); got != "ce013625030ba8dba906f756967f9e9ca394464a" {
		t.Errorf("git's hash: %s", got)
	}
	form := url.Values{"paths": {"original/params.json", "none", "original"}}.Encode()
	a := must(t, "POST", s.URL+"/api/models/org/m/paths-info/main", "", form, "Content-Type", "application/x-www-form-urlencoded")
	if got := decode[[]treeEntry](t, a.body); len(got) != 2 || got[0].Path != "original/params.json" || got[1].Type != "directory" {
		t.Errorf("paths: %+v", got)
	}
}

// TestRoutes: what the routes of a repo answer, one after the other; %s stands for the first commit.
func TestRoutes(t *testing.T) {
	s := Start(t, WithUser("tok", User{Name: "me"}))
	data := []byte("weights")
	first := s.AddRepo("me/m", map[string][]byte{"README.md": []byte("---\npipeline_tag: x\n---\n"), "w.safetensors": data})
	s.AddRepo("me/old", map[string][]byte{"a b.txt": []byte("hi")})
	const create, branch, settings, card = "/api/repos/create", "/api/models/me/m/branch/", "/api/models/me/m/settings", "/api/validate-yaml"
	for _, tc := range []struct {
		method, path, body string
		status             int
		holds              string // a part of body or header
	}{
		{"GET", "/api/models/me/m/revision/%s?blobs=true", "", 200, `"pipeline_tag":"x"`},
		{"GET", "/api/models/me/m?blobs=true", "", 200, `"sha256":"` + sha(data)},
		{"GET", "/api/models/me/m?expand=private&expand=sha", "", 200, `"private":false,"sha":"%s"}`},
		{"GET", "/api/models/me/m?expand=sha&blobs=true", "", 400, ""},
		{"GET", "/api/models/me/m/tree/main?cursor=x", "", 400, ""},
		{"GET", "/me/m/raw/main/w.safetensors", "", 200, "oid sha256:" + sha(data)},
		{"POST", create, `{"name":"n"}`, 200, "/me/n"},
		{"POST", create, `{"name":"n","organization":"me"}`, 409, "/me/n"},
		{"POST", create, `{"name":"n1","organization":"me","visibility":"private"}`, 200, `"private":true`},
		{"POST", create, `{"name":"n2","private":true}`, 200, `"private":true`},
		{"POST", create, `{"name":"n","organization":"others"}`, 403, ""},
		{"POST", create, `{"name":"a--b"}`, 400, ""},
		{"POST", create, `{"name":"x.git"}`, 400, ""},
		{"POST", create, `{"name":"` + strings.Repeat("x", 97) + `"}`, 400, ""},
		{"POST", create, `{"name":"d","type":"dataset"}`, 400, ""},
		{"POST", create, `{`, 400, ""},
		{"POST", branch + "work%2F1", `{"startingPoint":"%s"}`, 200, ""},
		{"POST", branch + "work%2F1", `{}`, 409, ""},
		{"GET", "/api/models/me/m/refs", "", 200, `"name":"work/1","ref":"refs/heads/work/1","targetCommit":"%s"`},
		{"POST", branch + "bad", `{"startingPoint":"nope"}`, 404, codeRevisionNotFound},
		{"POST", branch + "refs%2Fpr%2F1", `{}`, 400, ""},
		{"DELETE", branch + "work%2F1", ``, 200, ""},
		{"DELETE", branch + "work%2F1", ``, 404, codeRevisionNotFound},
		{"DELETE", branch + "main", ``, 403, ""},
		{"PUT", settings, `{"visibility":"private"}`, 200, `"private":true`},
		{"PUT", settings, `{"visibility":"sometimes"}`, 400, ""},
		{"PUT", settings, `{"visibility":"public"}`, 200, `"private":false`},
		{"POST", "/api/repos/move", `{"fromRepo":"me/old","toRepo":"me/new"}`, 200, ""},
		{"GET", "/api/models/me/old/tree/refs%2Fpr%2F1?x", "", 307, "/api/models/me/new/tree/refs%2Fpr%2F1?x"},
		{"GET", "/me/old/resolve/main/a%20b.txt", "", 307, "/me/new/resolve/main/a%20b.txt"},
		{"GET", "/me/old.git/info/lfs/objects/batch", "", 307, "/me/new.git/info/lfs/objects/batch"},
		{"GET", "/api/models/me/old2", "", 404, codeRepoNotFound},
		{"POST", create, `{"name":"old"}`, 200, ""},
		{"GET", "/api/models/me/old", "", 200, `"id":"me/old"`}, // a new repo of the old name ends the redirect
		{"POST", card, `{"content":"# none\n"}`, 200, `"errors":[]`},
		{"POST", card, `{"content":"---\nlicense: other\nlicense_name: x\nlanguage:\n- no\n---\n"}`, 200, ""}, // no is text in YAML 1.2
		{"POST", card, `{"content":"---\nlicense: other\n---\n"}`, 400, "license_name"},
		{"POST", card, `{"content":"---\ntags:\n- 1.0\n---\n"}`, 400, "tags"},
		{"POST", card, `{"content":"---\nlicense: [a\n---\n"}`, 400, "YAML"},
	} {
		fill := strings.NewReplacer("%s", first)
		a := ask(t, tc.method, s.URL+fill.Replace(tc.path), "tok", fill.Replace(tc.body))
		if said := fmt.Sprint(a.header, a.body); a.status != tc.status || !strings.Contains(said, fill.Replace(tc.holds)) {
			t.Errorf("%s %s %s: %d %s", tc.method, tc.path, tc.body, a.status, said)
		}
	}
}

// TestPreupload: what goes to git and what to LFS, and what a branch holds already.
func TestPreupload(t *testing.T) {
	s := Start(t, WithLFSThreshold(1000))
	s.AddRepo("me/m", map[string][]byte{"same.txt": []byte("x"), "w.safetensors": []byte("w"), ".gitignore": []byte("*.tmp\n")})
	for _, tc := range []struct {
		path, sample string
		size         int
		want         string // uploadMode, shouldIgnore, oid
	}{
		{"same.txt", "eA==", 1, "regular false " + blobID([]byte("x"))},
		{"w.safetensors", "dw==", 1, "lfs false " + sha([]byte("w"))},
		{"empty.safetensors", "", 0, "regular false "},
		{"big.txt", "eA==", 1000, "lfs false "},
		{"small.txt", "eA==", 999, "regular false "},
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

// TestCommitErrors: a commit that is wrong anywhere changes nothing.
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
		"git folder":        {commitBody(fileLine(".git/config", "")), 400},
		"absolute path":     {commitBody(fileLine("/x", "")), 400},
		"twice":             {commitBody(fileLine("x", "1"), fileLine("x", "2")), 400},
		"file and folder":   {commitBody(fileLine("d", "1")), 400},
		"unknown operation": {commitBody(`{"key":"copyFile","value":{"path":"x"}}`), 400},
		"not base64":        {commitBody(`{"key":"file","value":{"path":"x","content":"%","encoding":"base64"}}`), 400},
		"no header":         {fileLine("x", ""), 400},
		"no summary":        {`{"key":"header","value":{}}`, 400},
		"empty":             {"", 400},
		"stale parent":      {`{"key":"header","value":{"summary":"s","parentCommit":"` + strings.Repeat("0", 40) + `"}}`, 412},
		"not JSON":          {"hello", 400},
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

// TestCommitRace lets many clients commit with the same parent: one wins, and its commit is a new state beside the old one.
func TestCommitRace(t *testing.T) {
	s := Start(t)
	data := []byte("weights")
	head := s.AddRepo("me/m", map[string][]byte{"w.safetensors": data, "gone.txt": []byte("g")})
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for i := range 10 {
		all.Go(func() {
			body := strings.Replace(commitBody(lfsLine("copy.data", data), fileLine(fmt.Sprint(i), "x"), deleteLine("gone.txt")),
				`"description"`, fmt.Sprintf(`"parentCommit":%q,"description"`, head[:7]), 1)
			a := ask(t, "POST", s.URL+"/api/models/me/m/commit/main", "tok", body)
			mu.Lock()
			defer mu.Unlock()
			got[a.status]++
		})
	}
	all.Wait()
	log := s.Commits("me/m", "main")
	if got[200] != 1 || got[412] != 9 || log[0].Parent != head || log[0].Title != "add" || log[0].Message != "more" {
		t.Errorf("%v, %+v", got, log[0])
	}
	if now, before := s.Files("me/m", "main"), s.Files("me/m", head); len(now) != 4 || now["copy.data"].SHA256 != sha(data) || len(before) != 3 {
		t.Errorf("files: %+v, before: %+v", now, before)
	}
}

// TestDuplicate: an object of one repo becomes another's without its bytes, if it is named by the hash that trees show.
func TestDuplicate(t *testing.T) {
	s := Start(t, WithXetHashes())
	data := []byte("weights")
	s.AddRepo("a/src", map[string][]byte{"w.safetensors": data})
	s.AddRepo("b/dst", nil)
	for _, tc := range []struct {
		hash   string
		copied bool
	}{{"wrong", false}, {xetHash(sha(data)), true}} {
		q := fmt.Sprintf(`{"target":{"name":"b/dst"},"files":[{"xetHash":%q,"sha256":%q}]}`, tc.hash, sha(data))
		a := must(t, "POST", s.URL+"/api/models/a/src/lfs-files/duplicate", "tok", q)
		if s.Holds("b/dst", sha(data)) != tc.copied || strings.Contains(a.body, `"failed":[]`) != tc.copied {
			t.Errorf("%s: %s", tc.hash, a.body)
		}
	}
	must(t, "POST", s.URL+"/api/models/b/dst/commit/main", "tok", commitBody(lfsLine("w.safetensors", data)))
}

// TestStateFromOutside: what a test sets and sees of repos, without a request.
func TestStateFromOutside(t *testing.T) {
	s := Start(t)
	first := s.AddRepo("me/m", map[string][]byte{"a.txt": []byte("1")})
	s.Push("me/m", "main", map[string][]byte{"a.txt": []byte("2")})
	s.CreateBranch("me/m", "refs/tags/v1", first)
	s.Push("me/m", "work", map[string][]byte{"w.txt": []byte("w")})
	s.CreateBranch("me/m", "refs/pr/1", "main")
	pull := s.Push("me/m", "refs/pr/1", map[string][]byte{"a.txt": []byte("3")})
	if b, err := s.ReadFile("me/m", pull, "a.txt"); err != nil || string(b) != "3" || s.Head("me/m", "main") == pull {
		t.Errorf("the commit of a pull request, which anybody can make, has %q, %v", b, err)
	}
	refs := s.Refs("me/m")
	if len(refs) != 4 || refs["refs/tags/v1"] != first || s.Head("me/m", "v1") != first || len(s.Files("me/m", "work")) != 1 {
		t.Errorf("refs: %v", refs)
	}
	s.Configure("me/m", Private(), Gated("auto"))
	if private, gated := s.Visibility("me/m"); !private || gated != "auto" {
		t.Error(private, gated)
	}
	if s.Files("me/none", "main") != nil || s.Head("me/m", "none") != "" {
		t.Error("what is not there must be empty")
	}
	if _, err := s.ReadFile("me/m", "main", "none"); err == nil {
		t.Error("no error for a missing file")
	}
	claimed := strings.Repeat("a", 64)
	if _, err := s.AddGenerated("me/m", "lie", 3, claimed, strings.NewReader("abc")); err != nil || s.Files("me/m", "main")["lie"].SHA256 != claimed {
		t.Error("a hash that is given is believed", err)
	}
	if _, err := s.AddGenerated("me/m", "short", 10, "", strings.NewReader("")); err == nil {
		t.Error("a body that ends early must be refused")
	}
}
