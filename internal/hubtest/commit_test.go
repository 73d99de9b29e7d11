package hubtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func jsonText(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestCommitErrors(t *testing.T) {
	s := Start(t)
	data := []byte("weights")
	s.AddRepo("me/m", map[string][]byte{"old.safetensors": data, "d/x.txt": []byte("x")})
	head := s.Head("me/m", "main")
	other := []byte("never uploaded")
	size := func(n int) string {
		return fmt.Sprintf(`{"key":"lfsFile","value":{"path":"p","algo":"sha256","oid":%q,"size":%d}}`, sha(data), n)
	}
	for name, tc := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"unknown object":    {commitBody(lfsLine("new.safetensors", other)), 400, ""},
		"wrong size":        {commitBody(size(8)), 400, ""},
		"bad card":          {commitBody(fileLine("README.md", "---\ntags: 7\n---\n")), 400, ""},
		"missing file":      {commitBody(`{"key":"deletedFile","value":{"path":"none"}}`), 404, codeEntryNotFound},
		"climbing path":     {commitBody(fileLine("../x", "")), 400, ""},
		"git folder":        {commitBody(fileLine(".git/config", "")), 400, ""},
		"absolute path":     {commitBody(fileLine("/x", "")), 400, ""},
		"twice":             {commitBody(fileLine("x", "1"), fileLine("x", "2")), 400, ""},
		"file and folder":   {commitBody(fileLine("d", "1")), 400, ""},
		"unknown operation": {commitBody(`{"key":"copyFile","value":{"path":"x"}}`), 400, ""},
		"not base64":        {commitBody(`{"key":"file","value":{"path":"x","content":"%","encoding":"base64"}}`), 400, ""},
		"no header":         {fileLine("x", ""), 400, ""},
		"no summary":        {`{"key":"header","value":{}}`, 400, ""},
		"empty":             {"", 400, ""},
		"stale parent":      {`{"key":"header","value":{"summary":"s","parentCommit":"` + strings.Repeat("0", 40) + `"}}`, 412, ""},
		"not JSON":          {"hello", 400, ""},
	} {
		resp, body := do(t, "POST", s.URL+"/api/models/me/m/commit/main", "tok", tc.body, "Content-Type", "application/x-ndjson")
		if resp.StatusCode != tc.status || resp.Header.Get("X-Error-Code") != tc.code {
			t.Errorf("%s: got %d %q, want %d %q: %s", name, resp.StatusCode, resp.Header.Get("X-Error-Code"), tc.status, tc.code, body)
		}
	}
	if s.Head("me/m", "main") != head {
		t.Error("a refused commit moved the branch")
	}
	resp, body := do(t, "POST", s.URL+"/api/models/me/m/commit/nope", "tok", commitBody())
	want(t, resp, body, 404, codeRevisionNotFound)
}

func TestCommitOperations(t *testing.T) {
	s := Start(t)
	data := []byte("weights")
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": data, "gone.txt": []byte("g")})
	head := s.Head("me/m", "main")
	body := `{"key":"header","value":{"summary":"edit","description":"more","parentCommit":"` + head[:7] + `"}}` + "\n" +
		strings.Join([]string{
			lfsLine("sub/odd name.data", data), // a copy: the repo holds the object
			fileLine("plain.txt", "plain\n"),
			`{"key":"deletedFile","value":{"path":"gone.txt"}}`,
		}, "\n") + "\n"
	resp, answer := do(t, "POST", s.URL+"/api/models/me/m/commit/main", "tok", body)
	want(t, resp, answer, 200, "")
	oid := decode[struct{ CommitOid string }](t, answer).CommitOid
	files := s.Files("me/m", "main")
	if len(files) != 4 || files["sub/odd name.data"].SHA256 != sha(data) || files["plain.txt"].BlobID != blobID([]byte("plain\n")) {
		t.Errorf("files: %+v", files)
	}
	attributes, _ := s.ReadFile("me/m", "main", attributesFile)
	if !strings.Contains(string(attributes), "sub/odd[[:space:]]name.data filter=lfs") || strings.Contains(string(attributes), "w.safetensors") {
		t.Errorf("attributes: %s", attributes)
	}
	log := s.Commits("me/m", "main")
	if log[0].OID != oid || log[0].Parent != head || log[0].Title != "edit" || log[0].Message != "more" {
		t.Errorf("log: %+v", log[0])
	}
	if old := s.Files("me/m", head); len(old) != 3 {
		t.Errorf("the old commit changed: %+v", old)
	}
}

// TestCommitRace lets many clients commit with the same parent: one wins.
func TestCommitRace(t *testing.T) {
	s := Start(t)
	head := s.AddRepo("me/m", nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for i := range 10 {
		wg.Go(func() {
			q := fmt.Sprintf(`{"key":"header","value":{"summary":"s","parentCommit":%q}}`+"\n%s", head, fileLine(fmt.Sprint(i), "x"))
			resp, _ := do(t, "POST", s.URL+"/api/models/me/m/commit/main", "tok", q)
			mu.Lock()
			defer mu.Unlock()
			got[resp.StatusCode]++
		})
	}
	wg.Wait()
	if got[200] != 1 || got[412] != 9 {
		t.Errorf("got %v", got)
	}
}

func TestPreupload(t *testing.T) {
	s := Start(t, WithLFSThreshold(1000))
	s.AddRepo("me/m", map[string][]byte{"same.txt": []byte("x"), "w.safetensors": []byte("w"), ".gitignore": []byte("*.tmp\n/out/\n!keep.tmp\n")})
	for _, tc := range []struct {
		path, sample string
		size         int
		mode         string
		ignore       bool
		oid          string
	}{
		{"same.txt", "eA==", 1, "regular", false, blobID([]byte("x"))},
		{"w.safetensors", "dw==", 1, "lfs", false, sha([]byte("w"))},
		{"empty.safetensors", "", 0, "regular", false, ""},
		{"big.txt", "eA==", 1000, "lfs", false, ""},
		{"small.txt", "eA==", 999, "regular", false, ""},
		{"binary.dat", "AAE=", 2, "lfs", false, ""},
		{"x.tmp", "eA==", 1, "regular", true, ""},
		{"keep.tmp", "eA==", 1, "regular", false, ""},
		{"out/a", "eA==", 1, "regular", true, ""},
		{"deep/x.tmp", "eA==", 1, "regular", true, ""},
		{"saved_model/a/b", "eA==", 1, "lfs", false, ""},
	} {
		q := fmt.Sprintf(`{"files":[{"path":%q,"sample":%q,"size":%d}]}`, tc.path, tc.sample, tc.size)
		resp, body := do(t, "POST", s.URL+"/api/models/me/m/preupload/main", "tok", q)
		want(t, resp, body, 200, "")
		got := decode[struct {
			Files []struct {
				Path, UploadMode, OID string
				ShouldIgnore          bool
			}
			CommitOid string
		}](t, body)
		f := got.Files[0]
		if f.UploadMode != tc.mode || f.ShouldIgnore != tc.ignore || f.OID != tc.oid || got.CommitOid != s.Head("me/m", "main") {
			t.Errorf("%s: %+v", tc.path, got)
		}
	}
}
