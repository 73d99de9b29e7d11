package hubtest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// spoiledBy asks for the answer that a fault spoils. Where nothing more is to come, the server is closed after a while.
func spoiledBy(t *testing.T, s *Server, fault, method, url, token, body string, header ...string) answer {
	t.Helper()
	s.Inject(Fault{Name: fault})
	endless := map[string]bool{"slow": true, "stall": true, "stall-header": true, "hub-stall": true}
	if endless[fault] {
		go func() {
			for s.FaultsActed(fault) == 0 && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond) // in which more would come
			s.Close()
		}()
	}
	return ask(t, method, url, token, body, header...)
}

// TestNamedFaults: each fault of the table spoils one answer as it says, and the next one is right again.
func TestNamedFaults(t *testing.T) {
	const file, tree, info = "/me/m/resolve/main/model.safetensors", "/api/models/me/m/tree/main", "/api/models/me/m"
	const lfs, verify, commit = "/me/m.git/info/lfs/objects/batch", "/me/m.git/info/lfs/objects/verify", "/api/models/me/m/commit/main"
	const create, card = "/api/repos/create", "/api/validate-yaml"
	const branch = "/api/models/me/m/branch/next"
	files := LlamaModel(5, ModelOptions{})
	whole := len(files["model.safetensors"])
	tested := map[string]bool{}
	for _, at := range []struct {
		method, path string            // a path without a slash is one of the storage host
		faults       map[string]string // the status, -1 where the connection ends too soon, and what is said, or after a ! is not
	}{
		{"GET", "object", map[string]string{
			"cdn-500": "500 InternalError", "cdn-503": "503 SlowDown", "reset": "-1 0 bytes", "cut": "-1", "short": "-1 1000 bytes",
			"chunked": "200 1000 bytes", "corrupt": fmt.Sprintf("206 %d bytes", whole), "ignore-range": fmt.Sprintf("200 %d bytes", whole),
			"wrong-range": "206 bytes 1-", "gzip": "200 Content-Encoding:[gzip]", "400-range": "400", "expired": "403 expired", "slow": "-1",
			"stall": "-1 1000 bytes", "stall-header": "-1 0 bytes", "416": "416 bytes */1",
		}},
		{"GET", info, map[string]string{
			"429-ratelimit": "429 r=0;t=2", "429-retry-after": "429 Retry-After:[1]", "429-http-date": "429 GMT", "429-bare": "429", "500": "500",
			"502": "502 text/html", "503": "503", "504": "504 text/html", "hub-reset": "-1", "hub-stall": "-1", "warning": "200 X-Hf-Warning:[rate; ",
			"bad-token": "401 Invalid credentials", "mirror": "308 huggingface.co/api/models/me/m", "disabled": "403 disabled", "repo-401": "401 " + codeRepoNotFound,
			"repo-404": "404 " + codeRepoNotFound, "revision-404": "404 " + codeRevisionNotFound,
		}},
		{"GET", info + "/auth-check", map[string]string{"no-auth-check": "404 text/html"}},
		{"POST", card, map[string]string{"no-card-check": "404 text/html"}},
		{"HEAD", file, map[string]string{
			"etag-changed": "302 X-Linked-Etag:[\"ffff", "commit-changed": "302 X-Repo-Commit:[0000000000", "no-commit": "302 !X-Repo-Commit", "size-changed": "302 X-Linked-Size:[1]",
			"no-size": "302 !X-Linked-Size", "redirect-loop": "302 Location:[" + file, "redirect-host": "302 Location:[http://localhost:", "redirect-port": "302 Location:[http://127.0.0.1:",
			"redirect-scheme": "302 Location:[https://localhost:", "gated-401": "401 " + codeGatedRepo, "gated-403": "403 " + codeGatedRepo, "entry-404": "404 " + codeEntryNotFound,
		}},
		{"GET", tree, map[string]string{
			"link-origin": `200 Link:[<http://localhost:`, "tree-duplicate": "200", "tree-empty": "200 2 bytes", "tree-bad-path": `200 "../../outside.txt"`, "tree-bad-hash": "200 etc/passwd",
		}},
		{"POST", lfs, map[string]string{
			"batch-500": "500", "batch-quota": "403 storage limit", "lfs-error": `200 "code":422`, "lfs-429": `200 "code":429`, "lfs-503": `200 "code":503`, "lfs-quota": `200 "code":403`,
			"lfs-no-actions": `200 !"actions"`, "lfs-part-count": `200 !"00003"`, "lfs-chunk-size": `200 "chunk_size":"many"`, "lfs-chunk-zero": `200 "chunk_size":"0"`,
		}},
		{"PUT", "part", map[string]string{
			"put-500": "500", "put-503": "503", "put-timeout": "400 RequestTimeout", "put-expired": "403", "put-token": "400 ExpiredToken", "put-no-upload": "404 NoSuchUpload",
			"put-reset": "-1", "put-reset-after": "-1", "put-no-etag": "200 !Etag", "put-wrong-etag": `200 Etag:["000000`,
		}},
		{"POST", "complete", map[string]string{"complete-400": "400", "complete-500": "500", "complete-after": "500"}},
		{"POST", verify, map[string]string{"verify-404": "404", "verify-500": "500", "verify-mismatch": "422"}},
		{"POST", commit, map[string]string{
			"commit-412": "412", "commit-409": "409", "commit-race": "412", "commit-500": "500", "commit-500-after": "500", "commit-504-after": "504", "commit-reset-after": "-1",
			"commit-400-lfs": "400", "commit-quota": "403", "commit-429": "429",
		}},
		{"POST", create, map[string]string{"create-409": "409", "create-403": "403"}},
		{"POST", branch, map[string]string{"branch-409": "409"}},
		{"DELETE", branch, map[string]string{"branch-404-after": "404 text/html"}},
	} {
		for name, want := range at.faults {
			tested[name] = true
			s := Start(t, WithMultipart(1, 4000), WithPageSize(8))
			head := s.AddRepo("me/m", files)
			data := []byte(strings.Repeat("0123456789", 1000))
			up := batch(t, s, "me/m", data).Actions["upload"]
			url, token, body := s.URL+at.path, "tok", map[string]string{
				lfs: batchBody(data), verify: fmt.Sprintf(`{"oid":%q,"size":1}`, sha(data)), create: `{"name":"n"}`, card: "{}", branch: "{}",
				commit: fmt.Sprintf(`{"key":"header","value":{"summary":"s","parentCommit":%q}}`+"\n%s", head, fileLine("a", "x")), "part": string(data[:4000]),
			}[at.path]
			switch at.path {
			case "object":
				url, token = location(t, s, "me/m", "model.safetensors"), ""
			case "part":
				url, token = up.Header["00001"], ""
			case "complete":
				url, token, body = up.Href, "", putParts(t, up.Header, data)
			}
			a := spoiledBy(t, s, name, at.method, url, token, body, "Range", "bytes=0-")
			status, seen, _ := strings.Cut(want, " ")
			seen, absent := strings.CutPrefix(seen, "!")
			said := fmt.Sprint(a.header, a.body, " ", len(a.body), " bytes")
			if a.err != nil {
				a.status = -1
			}
			if fmt.Sprint(a.status) != status || strings.Contains(said, seen) == absent || s.FaultsActed(name) != 1 {
				t.Errorf("%s: %d %v %.600s, want %s", name, a.status, a.err, said, want)
			}
			wantCommits := map[string]int{"commit-race": 3, "commit-500-after": 3, "commit-504-after": 3, "commit-reset-after": 3}[name]
			if at.path == commit && len(s.Commits("me/m", "main")) != max(2, wantCommits) || s.Holds("me/m", sha(data)) != (name == "complete-after") {
				t.Errorf("%s: it is wrong what was done", name)
			}
		}
	}
	for _, name := range FaultNames() {
		if !tested[name] || DescribeFault(name) == "" {
			t.Errorf("fault %s is not tested, or not described", name)
		}
	}
}

// TestFaultRules: when a rule acts, and on what.
func TestFaultRules(t *testing.T) {
	s := Start(t)
	s.AddRepo("me/m", map[string][]byte{"a.txt": []byte("a")})
	teapot := Status(418, nil, "")
	get := func() int { return ask(t, "GET", s.URL+"/me/m/resolve/main/a.txt", "", "").status }
	s.Inject(Fault{Name: "mine", Method: "GET", Path: "/me/*/a.txt", Nth: 2, Times: 2, Action: teapot})
	for i, status := range []int{200, 418, 418, 200} {
		if got := get(); got != status {
			t.Errorf("request %d: got %d, want %d", i+1, got, status)
		}
	}
	if q := s.Requests()[1]; q.Fault != "mine" || q.Status != 418 || q.Seq != 2 || q.Method != "GET" {
		t.Errorf("log: %+v", q)
	}
	s.ClearFaults()
	s.Inject(Fault{Times: Always, Probability: 0.5, Seed: 1, Action: teapot})
	got := map[int]int{}
	for range 60 {
		got[get()]++
	}
	if s.ClearFaults(); got[418] < 15 || got[200] < 15 || get() != 200 || s.Count("GET", "*/a.txt") != 65 {
		t.Errorf("half of them should fail: %v, of %d", got, s.Count("GET", "*/a.txt"))
	}
	for spec, times := range map[string]int{"cut": 0, "cut:3": 3, "cut:always": Always} {
		if f, err := ParseFault(spec); err != nil || f.Name != "cut" || f.Times != times {
			t.Errorf("%s: got %+v, %v", spec, f, err)
		}
	}
	for _, spec := range []string{"nope", "cut:0", "cut:-1", "cut:0.5", "cut:x", "cut:"} {
		if _, err := ParseFault(spec); err == nil {
			t.Errorf("%s: no error", spec)
		}
	}
}

// TestBrokenServer: a fault action, or route, that panics is noticed, and Close ends an answer that stalls.
func TestBrokenServer(t *testing.T) {
	s := New()
	s.Inject(Fault{Action: func(*Exchange) { panic("broken") }})
	if a := ask(t, "GET", s.URL+"/x", "", ""); a.err == nil || len(s.Violations()) != 1 || !strings.Contains(s.Violations()[0], "broken") {
		t.Errorf("%v, violations: %q", a.err, s.Violations())
	}
	if a := spoiledBy(t, s, "hub-stall", "GET", s.URL+"/api/models/me/m", "", ""); a.err == nil {
		t.Error("the stalled request ended well")
	}
	s.Close()
}
