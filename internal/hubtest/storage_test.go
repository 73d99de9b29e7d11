package hubtest

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDownload: a large file comes from the second host, a JSON file by the resolve cache, and the others at once, each with
// the hashes that clients check.
func TestDownload(t *testing.T) {
	for _, xet := range []bool{false, true} {
		var opts []Option
		if xet {
			opts = append(opts, WithXetHashes())
		}
		s := Start(t, opts...)
		files := LlamaModel(1, ModelOptions{})
		head := s.AddRepo("org/tiny", files)
		weights := files["model.safetensors"]
		a := must(t, "HEAD", s.URL+"/org/tiny/resolve/main/model.safetensors", "tok", "")
		for k, v := range map[string]string{"X-Repo-Commit": head, "X-Linked-Etag": `"` + sha(weights) + `"`, "X-Linked-Size": fmt.Sprint(len(weights))} {
			if got := a.header.Get(k); got != v {
				t.Errorf("%s: got %s, want %s", k, got, v)
			}
		}
		if hash := a.header.Get("X-Xet-Hash"); sha256Hex.MatchString(hash) != xet || strings.Contains(a.header.Get("Link"), "xet-read-token/"+head) != xet {
			t.Errorf("Xet %t: %v", xet, a.header)
		}
		at := a.header.Get("Location")
		if !strings.HasPrefix(at, s.CDNURL) || must(t, "GET", at, "", "", "Range", "bytes=100-199").body != string(weights[100:200]) {
			t.Errorf("the bytes at %s", at)
		}
		if a := must(t, "GET", s.URL+"/org/tiny/resolve/"+head+"/LICENSE", "", ""); a.body != string(files["LICENSE"]) || a.header.Get("ETag") != `"`+blobID(files["LICENSE"])+`"` {
			t.Error("a git file")
		}
		cached := must(t, "GET", s.URL+"/org/tiny/resolve/main/config.json", "", "").header.Get("Location")
		if !strings.HasPrefix(cached, "/api/resolve-cache/") || must(t, "GET", s.URL+cached, "", "").body != string(files["config.json"]) {
			t.Errorf("the resolve cache: %s", cached)
		}
	}
}

// TestRanges: both hosts serve ranges as net/http does, and HEAD tells the same as GET.
func TestRanges(t *testing.T) {
	s := Start(t)
	s.AddRepo("org/m", map[string][]byte{"a.txt": []byte("0123456789"), "w.safetensors": []byte("0123456789")})
	for _, url := range []string{s.URL + "/org/m/resolve/main/a.txt", location(t, s, "org/m", "w.safetensors")} {
		for _, tc := range []struct {
			ask, body, contentRange string
			status                  int
		}{
			{"", "0123456789", "", 200},
			{"bytes=0-0", "0", "bytes 0-0/10", 206},
			{"bytes=-3", "789", "bytes 7-9/10", 206},
			{"bytes=8-99", "89", "bytes 8-9/10", 206},
			{"bytes=10-", "invalid range: failed to overlap\n", "bytes */10", 416},
		} {
			get, head := ask(t, "GET", url, "", "", "Range", tc.ask), ask(t, "HEAD", url, "", "", "Range", tc.ask)
			if get.status != tc.status || get.body != tc.body || get.header.Get("Content-Range") != tc.contentRange || head.header.Get("ETag") != get.header.Get("ETag") {
				t.Errorf("%q: %d %q %v", tc.ask, get.status, get.body, get.header)
			}
		}
	}
}

// TestSignedURLs: a signed URL holds for its method, as it is written, without a token, and for its time.
func TestSignedURLs(t *testing.T) {
	clock := NewJumpClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	s := New(WithClock(clock.Now), WithURLLifetime(time.Hour, time.Minute))
	defer s.Close()
	s.AddRepo("me/m", map[string][]byte{"a b/w.safetensors": []byte("weights")})
	get, put := location(t, s, "me/m", "a%20b/w.safetensors"), batch(t, s, "me/m", []byte("x")).Actions["upload"].Href
	if a := must(t, "GET", get, "", ""); a.body != "weights" || a.header.Get("ETag") == `"`+sha([]byte(a.body))+`"` {
		t.Errorf("%q, %v", a.body, a.header)
	}
	for _, tc := range []struct {
		name, method, url, token string
		wait                     time.Duration
		status                   int
		holds                    string
		violations               int
	}{
		{"no signature", "GET", strings.Split(get, "?")[0], "", 0, 403, "AccessDenied", 0},
		{"changed", "GET", strings.Replace(get, "%3B", ";", 1), "", 0, 403, "SignatureDoesNotMatch", 1},
		{"a token besides", "GET", get, "tok", 0, 400, "Only one auth mechanism", 1},
		{"a token with a PUT", "PUT", put, "tok", 0, 400, "Only one auth mechanism", 1},
		{"another method", "GET", put, "", 0, 405, "", 0},
		{"PUT, expired", "PUT", put, "", time.Minute, 403, "Request has expired", 0},
		{"expired", "GET", get, "", time.Hour, 403, "Request has expired", 0},
	} {
		s.ResetLog()
		_ = clock.Sleep(t.Context(), tc.wait)
		a := ask(t, tc.method, tc.url, tc.token, "")
		if a.status != tc.status || !strings.Contains(a.body, tc.holds) || len(s.Violations()) != tc.violations {
			t.Errorf("%s: %d %s, violations %q", tc.name, a.status, a.body, s.Violations())
		}
	}
}

// TestUpload: an object goes up in one piece or in parts, and is committed; it is kept, dropped, or written to the push folder.
func TestUpload(t *testing.T) {
	for name, opts := range map[string][]Option{
		"basic": nil, "multipart": {WithMultipart(1, 1000)}, "dropped": {WithMultipart(1, 1000), WithDropUploads()}, "dropped 1": {WithDropUploads()},
	} {
		s := Start(t, opts...)
		must(t, "POST", s.URL+"/api/repos/create", "tok", `{"name":"out","organization":"me"}`)
		data := bytes.Repeat([]byte("weights "), 1234)
		upload(t, s, "me/out", data)
		must(t, "POST", s.URL+"/api/models/me/out/commit/main", "tok", commitBody(lfsLine("a/model.safetensors", data)))
		got, err := s.ReadFile("me/out", "main", "a/model.safetensors")
		if dropped := err != nil; dropped != strings.HasPrefix(name, "dropped") || !dropped && !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if f := s.Files("me/out", "main")["a/model.safetensors"]; f.SHA256 != sha(data) || f.Size != int64(len(data)) {
			t.Errorf("%s: %+v", name, f)
		}
		if batch(t, s, "me/out", data).Actions != nil {
			t.Errorf("%s: a stored object must have no actions", name)
		}
		if s.AddRepo("me/out", nil); batch(t, s, "me/out", data).Actions == nil {
			t.Errorf("%s: a repo that is made anew has the object", name)
		}
	}
	for _, order := range [][]int{{1, 2, 3}, {3, 2, 1}, {2, 2, 3, 1, 1}} { // parts that are dropped, some sent twice
		parts := (&config{dropUploads: true}).assemble(3, 9)
		for _, n := range order {
			parts.put(n, []byte(strings.Repeat(fmt.Sprint(n), 3)))
		}
		if o := parts.object(); o.sha256 != sha([]byte("111222333")) || o.size != 9 || len(parts.waiting) != 0 {
			t.Errorf("%v: %+v", order, o)
		}
	}
}

// TestWrongUploads: what is refused on the way up, and where it shows.
func TestWrongUploads(t *testing.T) {
	s := Start(t, WithMultipart(6, 4), WithUser("tok", User{Name: "me"}), WithUser("reader", User{Name: "me", ReadOnly: true}))
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": []byte("w")})
	right, long := []byte("right"), []byte("0123456789")
	one, many := batch(t, s, "me/m", right).Actions, batch(t, s, "me/m", long).Actions["upload"]
	done := putParts(t, many.Header, long)
	first := done[strings.Index(done, `{"part`) : strings.Index(done, "},{")+2]
	url := s.URL + "/me/m.git/info/lfs/objects/batch"
	pointer := func(size int) string { return fmt.Sprintf(`{"oid":%q,"size":%d}`, sha(right), size) }
	for _, tc := range []struct {
		name, method, url, token, body string
		status                         int
		holds                          string
	}{
		{"nobody asks", "POST", url, "", batchBody(right), 401, ""},
		{"a reader asks", "POST", url, "reader", batchBody(right), 403, ""},
		{"to download", "POST", url, "tok", `{"operation":"download"}`, 400, ""},
		{"another hash", "POST", url, "tok", `{"operation":"upload","hash_algo":"md5"}`, 409, ""},
		{"no hash", "POST", url, "tok", `{"operation":"upload","objects":[{"oid":"xyz","size":1}]}`, 200, `"code":422`},
		{"no size", "POST", url, "tok", `{"operation":"upload","objects":[{"oid":"` + sha(right) + `","size":-1}]}`, 200, `"code":422`},
		{"another size", "POST", url, "tok", `{"operation":"upload","objects":[{"oid":"` + sha([]byte("w")) + `","size":2}]}`, 200, `"code":422`},
		{"wrong bytes", "PUT", one["upload"].Href, "", "wrong", 200, ""}, // the storage does not know better
		{"verified", "POST", one["verify"].Href, "tok", pointer(5), 404, ""},
		{"right bytes", "PUT", one["upload"].Href, "", "right", 200, ""},
		{"another size", "POST", one["verify"].Href, "tok", pointer(6), 422, ""},
		{"nobody verifies", "POST", one["verify"].Href, "", pointer(5), 401, ""},
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
	req, err := http.NewRequestWithContext(t.Context(), "PUT", one["upload"].Href, struct{ *strings.Reader }{strings.NewReader("x")})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != 501 {
		t.Errorf("a PUT of unknown length: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
}

// TestPushFolder: folders are repos, commits to main change their files, and nothing else does.
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
		lfsLine("w.safetensors", data), lfsLine("copy/w.safetensors", data), fileLine("config.json", "{}"), deleteLine("d/gone.txt")))
	s.CreateBranch("me/m", "work", "main")
	must(t, "POST", s.URL+"/api/models/me/m/commit/work", "tok", commitBody(fileLine("work.txt", "x")))
	s.Rename("me/m", "you/n")
	for p, want := range map[string]string{
		"w.safetensors": string(data), "copy/w.safetensors": string(data), "config.json": "{}", "old.txt": "old", "d": "", "work.txt": "",
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

// TestLinkSpeed checks the lower bound only: a busy machine may be slower.
func TestLinkSpeed(t *testing.T) {
	s := Start(t, WithLinkSpeed(1_000_000, 500_000))
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": data})
	url := location(t, s, "me/m", "w.safetensors")
	for _, tc := range []struct {
		least time.Duration
		move  func()
	}{
		{80 * time.Millisecond, func() { must(t, "GET", url, "", "") }},
		{160 * time.Millisecond, func() { upload(t, s, "me/m", append(data, 'x')) }},
	} {
		start := time.Now()
		if tc.move(); time.Since(start) < tc.least {
			t.Errorf("100 kB moved in %v", time.Since(start))
		}
	}
	var down, up int64
	for _, q := range s.Requests() {
		if q.Host == HostCDN {
			down, up = down+q.Sent, up+q.Received
		}
	}
	if down != 100_000 || up != 100_001 {
		t.Errorf("counted %d down, %d up", down, up)
	}
}
