package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

const shaA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// parseInfo decodes a document as Info does.
func parseInfo(body []byte) (*RepoInfo, error) {
	var doc infoDocument
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, err
	}
	return doc.info()
}

func TestParseInfo(t *testing.T) {
	good := `{"id":"a/b","sha":"` + testCommit + `","private":true,"gated":"auto","tags":["x"],"pipeline_tag":"text-generation",
	"library_name":"transformers","cardData":{"license":"mit"},"safetensors":{"parameters":{"BF16":7},"total":7},
	"siblings":[{"rfilename":"config.json","size":5,"blobId":"b1"},
	{"rfilename":"model.safetensors","size":9,"blobId":"b2","lfs":{"sha256":"` + strings.ToUpper(shaA) + `","size":10,"pointerSize":1}}]}`
	info, err := parseInfo([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if info.ID != "a/b" || !info.Private || info.Gated != "auto" {
		t.Errorf("got %+v", info)
	}
	ref, ok := info.File("model.safetensors")
	if want := (FileRef{Repo: "a/b", Commit: testCommit, Path: "model.safetensors", Size: 10, SHA256: shaA}); !ok || ref != want {
		t.Errorf("got %+v", ref)
	}
	if ref, ok := info.File("config.json"); !ok || ref.BlobID != "b1" || ref.Size != 5 {
		t.Errorf("got %+v", ref)
	}
	if _, ok := info.File("none"); ok {
		t.Error("found a file that is not there")
	}
}

// TestParseInfoLeniently: what strict types would fail on must not fail a run.
func TestParseInfoLeniently(t *testing.T) {
	for name, extra := range map[string]string{
		"tags as text":       `"tags":"x"`,
		"card with lists":    `"cardData":{"license":["mit","other"],"model-index":[{"a":[]}]}`,
		"gated true":         `"gated":true`,
		"pipeline as number": `"pipeline_tag":3`,
		"odd times":          `"lastModified":"yesterday","createdAt":7`,
		"odd widgets":        `"widgetData":{"a":1},"transformersInfo":[],"spaces":"x","likes":"many"`,
	} {
		info, err := parseInfo([]byte(`{"id":"a/b","sha":"` + testCommit + `","siblings":[{"rfilename":"x","size":1}],` + extra + `}`))
		if err != nil || len(info.Files) != 1 || info.SHA != testCommit {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, body := range map[string]string{
		"no object": `[]`, "no commit": `{"id":"a/b"}`, "short commit": `{"sha":"abc"}`,
		"files as text": `{"sha":"` + testCommit + `","siblings":"x"}`,
		"file as text":  `{"tags":"x","sha":"` + testCommit + `","siblings":[{"rfilename":"x","size":1},"y"]}`,
		"size as text":  `{"sha":"` + testCommit + `","siblings":[{"rfilename":"x","size":"1"}]}`,
		"hash as list":  `{"sha":"` + testCommit + `","siblings":[{"rfilename":"x","lfs":{"sha256":[],"size":1}}]}`,
		"bad hash":      `{"sha":"` + testCommit + `","siblings":[{"rfilename":"x","lfs":{"sha256":"zz","size":1}}]}`,
		"negative size": `{"sha":"` + testCommit + `","siblings":[{"rfilename":"x","size":-5}]}`,
	} {
		if _, err := parseInfo([]byte(body)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestInfoRefusesUnsafeNames(t *testing.T) {
	for _, name := range []string{"../x", "/etc/passwd", `a\\b`, "C:/x", ".git/hooks/x", "a\u009bb"} {
		for _, size := range []string{"1", "null"} {
			w := script(says(200, `{"sha":"`+testCommit+`","siblings":[{"rfilename":"`+name+`","size":`+size+`}]}`))
			c, _ := testClient(t, w)
			if _, err := c.Info(t.Context(), "a/b", ""); !errors.Is(err, wire.ErrUnsafePath) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, id := range []string{"../x", "a/b/c", "a/..", "a/b\u009b", "a b/c"} { // it becomes a part of paths and URLs
		w := script(says(200, `{"id":"`+id+`","sha":"`+testCommit+`","siblings":[]}`))
		c, _ := testClient(t, w)
		if _, err := c.Info(t.Context(), "a/b", ""); !errors.Is(err, wire.ErrNotHub) {
			t.Errorf("id %s: %v", id, err)
		}
	}
}

func TestInfoOfAnotherCommit(t *testing.T) {
	w := script(says(200, `{"sha":"`+strings.Repeat("f", 40)+`","siblings":[]}`))
	c, _ := testClient(t, w)
	if _, err := c.Info(t.Context(), "a/b", testCommit); !errors.Is(err, wire.ErrChanged) {
		t.Error(err)
	}
	if _, err := c.Info(t.Context(), "a/b", "refs/pr/1"); err != nil || w.Seen[1].URL.EscapedPath() != "/api/models/a/b/revision/refs%2Fpr%2F1" {
		t.Error(err, w.Seen[1].URL.EscapedPath())
	}
	for _, bad := range []string{"", "../a", "a/b/c", "a b/c", "a/b?x"} {
		if _, err := c.Info(t.Context(), bad, ""); err == nil {
			t.Errorf("repo %q was accepted", bad)
		}
	}
}

// TestTreeRefusesStrangeLinks: and reads the hash of a large file in either form.
func TestTreeRefusesStrangeLinks(t *testing.T) {
	for name, link := range map[string]string{
		"other origin": "https://evil.test/api/models/a/b/tree/main?cursor=2",
		"other port":   "https://hub.test:8443/api/models/a/b/tree/main?cursor=2",
		"endless":      "https://hub.test/api/models/a/b/tree/main?recursive=true&expand=false",
		"plain http":   "http://hub.test/api/models/a/b/tree/main?cursor=2",
	} {
		w := script(says(200, `[]`, `Link: <`+link+`>; rel="next"`))
		c, _ := testClient(t, w)
		if _, err := c.Tree(t.Context(), "a/b", "main"); !errors.Is(err, wire.ErrNotHub) || w.Count() != 1 {
			t.Errorf("%s: %d requests, %v", name, w.Count(), err)
		}
	}
	c, _ := testClient(t, script(says(200, `[{"type":"file","path":"y","oid":"g","size":9,"lfs":{"oid":"sha256:`+shaA+`","size":12},"xetHash":"x"}]`)))
	if tree, err := c.Tree(t.Context(), "a/b", "main"); err != nil || tree["y"] != (FileInfo{Path: "y", Size: 12, SHA256: shaA, BlobID: "g", XetHash: "x"}) {
		t.Errorf("%+v, %v", tree, err)
	}
}

// TestAnswerNeverTakesMoreThanItsShare: the least memory budget is 64 MiB, and no server may make an answer of that size.
func TestAnswerNeverTakesMoreThanItsShare(t *testing.T) {
	w := script(says(200, `{"name":"`+strings.Repeat("x", 17<<20)+`"}`))
	c, _ := testClient(t, w)
	if _, err := c.WhoAmI(t.Context()); !errors.Is(err, wire.ErrTooLarge) || w.Count() != 1 || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("%d requests, %v", w.Count(), err)
	}
}

// TestATreeWithoutEndIsNeverTaken: page after page, each with a cursor of its own, is bounded by what it brings.
func TestATreeWithoutEndIsNeverTaken(t *testing.T) {
	rows, n := make([]treeRow, 4), 0
	w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		for i := range rows {
			rows[i] = treeRow{Type: "file", Path: fmt.Sprint(n, i), OID: strings.Repeat("a", 1<<20)}
		}
		n++
		body, err := json.Marshal(rows)
		return reply(r, 200, string(body), fmt.Sprintf(`Link: <https://hub.test/next?cursor=%d>; rel="next"`, n)), err
	}}
	c, _ := testClient(t, w)
	if _, err := c.Tree(t.Context(), "a/b", "main"); !errors.Is(err, wire.ErrTooLarge) || n > 20 {
		t.Errorf("%d pages, %v", n, err)
	}
}

// TestCommitsMayHaveSixtyFourDigits: not every hub keeps its repos in git.
func TestCommitsMayHaveSixtyFourDigits(t *testing.T) {
	commit, text := strings.Repeat("0a", 32), "{}"
	w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		switch {
		case strings.Contains(r.URL.Path, "/revision/"):
			return reply(r, 200, `{"sha":"`+commit+`","siblings":[{"rfilename":"config.json","size":2}]}`), nil
		case strings.Contains(r.URL.Path, "/commit/"):
			return reply(r, 200, `{"commitOid":"`+commit+`"}`), nil
		}
		return reply(r, 200, text, "X-Repo-Commit: "+commit, "ETag: "+gitBlobHash([]byte(text))), nil
	}}
	c, _ := testClient(t, w)
	for _, revision := range []string{"main", commit} {
		if info, err := c.Info(t.Context(), "a/b", revision); err != nil || info.SHA != commit {
			t.Fatalf("%+v, %v", info, err)
		}
	}
	if data, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: commit, Path: "config.json"}, 10); err != nil || string(data) != text {
		t.Errorf("%q, %v", data, err)
	}
	done, err := c.Commit(t.Context(), "a/b", "main", CommitRequest{Parent: commit, Ops: []Op{FileOp("x", nil)}})
	if err != nil || done.OID != commit {
		t.Errorf("%+v, %v", done, err)
	}
}
