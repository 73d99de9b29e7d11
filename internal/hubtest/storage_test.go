package hubtest

import (
	"bytes"
	"fmt"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSignedURLs checks that a signed URL is valid for its method, as written, without a token, and
// once if that's asked for.
func TestSignedURLs(t *testing.T) {
	s := New(WithLinksForOnce())
	defer s.Close()
	s.AddRepo("me/m", map[string][]byte{"a b/w.safetensors": []byte("weights")})
	get, put := location(t, s, "me/m", "a%20b/w.safetensors"), batch(t, s, "me/m", []byte("x")).Actions["upload"].Href
	if a := must(t, "GET", get, "", ""); a.body != "weights" || a.header.Get("ETag") == `"`+world.Sum([]byte(a.body))+`"` {
		t.Errorf("%q, %v", a.body, a.header)
	}
	for _, tc := range []struct {
		name, method, url, token string
		status                   int
		holds                    string
		violations               int
	}{
		{"no signature", "GET", strings.Split(get, "?")[0], "", 403, "AccessDenied", 0},
		{"changed", "GET", strings.Replace(get, "%3B", ";", 1), "", 403, "SignatureDoesNotMatch", 1},
		{"a token besides", "GET", get, "tok", 400, "Only one auth mechanism", 1},
		{"another method", "GET", put, "", 405, "", 0},
		{"used before", "GET", get, "", 403, "Request has expired", 0},
	} {
		s.ResetLog()
		a := ask(t, tc.method, tc.url, tc.token, "")
		if a.status != tc.status || !strings.Contains(a.body, tc.holds) || len(s.Violations()) != tc.violations {
			t.Errorf("%s: %d %s, violations %q", tc.name, a.status, a.body, s.Violations())
		}
	}
}

// TestWrongUploads checks what's refused during an upload, and where.
func TestWrongUploads(t *testing.T) {
	s := Start(t, WithMultipart(6, 4), WithUser("tok", User{Name: "me"}), WithUser("reader", User{Name: "me", ReadOnly: true}))
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": []byte("w")})
	right, long := []byte("right"), []byte("0123456789")
	one, many := batch(t, s, "me/m", right).Actions, batch(t, s, "me/m", long).Actions["upload"]
	done := putParts(t, many.Header, long)
	first := done[strings.Index(done, `{"part`) : strings.Index(done, "},{")+2]
	url := s.URL + "/me/m.git/info/lfs/objects/batch"
	pointer := func(size int) string { return fmt.Sprintf(`{"oid":%q,"size":%d}`, world.Sum(right), size) }
	for _, tc := range []struct {
		name, method, url, token, body string
		status                         int
		holds                          string
	}{
		{"no one asks", "POST", url, "", batchBody(right), 401, ""},
		{"a reader asks", "POST", url, "reader", batchBody(right), 403, ""},
		{"another size", "POST", url, "tok", `{"operation":"upload","objects":[{"oid":"` + world.Sum([]byte("w")) + `","size":2}]}`, 200, `"code":422`},
		// the storage does not know better
		{"wrong bytes", "PUT", one["upload"].Href, "", "wrong", 200, ""},
		{"verified", "POST", one["verify"].Href, "tok", pointer(5), 404, ""},
		{"right bytes", "PUT", one["upload"].Href, "", "right", 200, ""},
		{"another size", "POST", one["verify"].Href, "tok", pointer(6), 422, ""},
		{"part too long", "PUT", many.Header["00001"], "", "01234", 400, "InvalidPart"},
		{"part too short", "PUT", many.Header["00003"], "", "8", 400, "InvalidPart"},
		{"part missing", "POST", many.Href, "", strings.Replace(done, first, "", 1), 400, "expected 3 parts, got 2"},
		{"part order", "POST", many.Href, "", strings.Replace(strings.Replace(done, `":1`, `":9`, 1), `":2`, `":1`, 1), 400, "InvalidPartOrder"},
		{"part etag", "POST", many.Href, "", strings.Replace(done, `\"`, "", 2), 400, "InvalidPart:"},
		{"all is well", "POST", many.Href, "", done, 200, ""},
		{"part after the end", "PUT", many.Header["00001"], "", "0123", 404, "NoSuchUpload"},
	} {
		if a := ask(t, tc.method, tc.url, tc.token, tc.body); a.status != tc.status || !strings.Contains(a.body, tc.holds) {
			t.Errorf("%s: %d %s", tc.name, a.status, a.body)
		}
	}
}

// TestPushFolder checks that folders are repos, that commits to main change their files, and that
// nothing else does.
func TestPushFolder(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"me/m/old.txt": "old", "me/m/d/gone.txt": "gone", "me/m/w.safetensors": "first", "me/m/.cache/x": "no", "me/m/.git/HEAD": "no",
		".hidden/m/x": "no", "me/.m/x": "no", "me/file": "no",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := Start(t, WithPushDir(root), WithMultipart(1, 1000))
	if err := s.AddDir(root); err != nil || len(s.repos) != 1 || len(s.Files("me/m", "main")) != 4 {
		t.Fatal(s.repos, s.Files("me/m", "main"), err)
	}
	first, data := s.Head("me/m", "main"), bytes.Repeat([]byte("second "), 500)
	upload(t, s, "me/m", data)
	must(t, "POST", s.URL+"/api/models/me/m/commit/main", "tok", commitBody(
		lfsLine("w.safetensors", data), lfsLine("copy/w.safetensors", data), lfsLine("a b.dat", data),
		fileLine("config.json", "{}"), deleteLine("d/gone.txt")))
	s.CreateBranch("me/m", "work", "main")
	must(t, "POST", s.URL+"/api/models/me/m/commit/work", "tok", commitBody(fileLine("work.txt", "x")))
	s.Rename("me/m", "you/n")
	for p, want := range map[string]string{
		"w.safetensors": string(data), "copy/w.safetensors": string(data), "config.json": "{}", "old.txt": "old", "d": "", "work.txt": "",
		".gitattributes": defaultAttributes + "a[[:space:]]b.dat filter=lfs diff=lfs merge=lfs -text\n",
	} {
		if got, err := os.ReadFile(filepath.Join(root, "you", "n", p)); string(got) != want || os.IsNotExist(err) != (want == "") {
			t.Errorf("%s: %d bytes, %v", p, len(got), err)
		}
	}
	if old, err := s.ReadFile("you/n", first, "w.safetensors"); err != nil || string(old) != "first" {
		t.Errorf("the first commit now holds %q, %v", old, err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, ".landing*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}
