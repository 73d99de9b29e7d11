package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

const nextCommit = "fedcba9876543210fedcba9876543210fedcba98"

// branchHub is one branch that takes commits.
type branchHub struct {
	t     *testing.T
	head  string
	tree  map[string]FileInfo
	posts int
	lines []string
	// before answers a commit instead of the hub; apply makes the commit land.
	before func(n int, apply func()) (*http.Response, error)
}

func newBranchHub(t *testing.T) *branchHub {
	return &branchHub{t: t, head: testCommit, tree: map[string]FileInfo{"old.txt": {Size: 1, BlobID: "x"}}}
}

func (h *branchHub) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.Contains(r.URL.Path, "/revision/"):
		return reply(r, 200, `{"sha":"`+h.head+`"}`), nil
	case strings.Contains(r.URL.Path, "/tree/"):
		var rows []treeRow
		for path, e := range h.tree {
			row := treeRow{Type: "file", Path: path, OID: e.BlobID, Size: e.Size}
			if e.SHA256 != "" {
				row.LFS = &struct {
					OID  string `json:"oid"`
					Size int64  `json:"size"`
				}{e.SHA256, e.Size}
			}
			rows = append(rows, row)
		}
		data, err := json.Marshal(rows)
		return reply(r, 200, string(data)), err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	h.posts++
	h.lines = strings.Split(strings.TrimSpace(string(body)), "\n")
	applied := false
	apply := func() { applied = true; h.apply() }
	if h.before != nil {
		resp, err := h.before(h.posts, apply)
		if resp != nil {
			resp.Request = r
		}
		if resp != nil || err != nil {
			return resp, err
		}
	}
	if !strings.Contains(h.lines[0], `"parentCommit":"`+h.head+`"`) && !applied {
		return reply(r, 412, `{"error":"parent commit is stale"}`), nil
	}
	h.apply()
	return reply(r, 200, `{"success":true,"commitOid":"`+h.head+`","commitUrl":"https://huggingface.co/a/b/commit/`+h.head+`"}`), nil
}

// apply makes the commit of the last body.
func (h *branchHub) apply() {
	h.head = nextCommit
	for _, line := range h.lines[1:] {
		var row struct {
			Key   string
			Value struct {
				Path, Content, OID string
				Size               int64
			}
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			h.t.Error(err)
		}
		switch row.Key {
		case "lfsFile":
			h.tree[row.Value.Path] = FileInfo{Size: row.Value.Size, SHA256: row.Value.OID}
		case "file":
			h.tree[row.Value.Path] = FileInfo{BlobID: gitBlobHash([]byte("hello\n"))}
		case "deletedFile":
			delete(h.tree, row.Value.Path)
		}
	}
}

var testOps = []Op{FileOp("a.txt", []byte("hello\n")), LFSOp("m.safetensors", shaA, 5), DeleteOp("old.txt"), {Path: "same"}}

func TestCommit(t *testing.T) {
	h := newBranchHub(t)
	c, _ := testClient(t, h)
	done, err := c.Commit(t.Context(), "a/b", "main", CommitRequest{Summary: "s <&>", Description: "d", Ops: testOps})
	if err != nil || done.OID != nextCommit {
		t.Fatalf("%+v, %v", done, err)
	}
	want := []string{
		`{"key":"header","value":{"description":"d","parentCommit":"` + testCommit + `","summary":"s <&>"}}`,
		`{"key":"file","value":{"content":"aGVsbG8K","encoding":"base64","path":"a.txt"}}`,
		`{"key":"lfsFile","value":{"algo":"sha256","oid":"` + shaA + `","path":"m.safetensors","size":5}}`,
		`{"key":"deletedFile","value":{"path":"old.txt"}}`,
	}
	if fmt.Sprint(h.lines) != fmt.Sprint(want) {
		t.Errorf("got %s", strings.Join(h.lines, "\n"))
	}
	if done, err = c.Commit(t.Context(), "a/b", "main", CommitRequest{Ops: testOps[3:]}); err != nil || done.OID != nextCommit || h.posts != 1 {
		t.Errorf("a commit without changes: %+v, %v", done, err)
	}
}

// TestOddAnswersToACommit: what no fault of a whole hub shows.
func TestOddAnswersToACommit(t *testing.T) {
	answer := func(code int, body string) func(int, func()) (*http.Response, error) {
		return func(n int, _ func()) (*http.Response, error) {
			if n > 1 {
				return nil, nil
			}
			return reply(nil, code, body), nil
		}
	}
	for _, tt := range []struct {
		name   string
		before func(n int, apply func()) (*http.Response, error)
		posts  int
		want   error
	}{
		{"success that names no commit, after applying", func(_ int, apply func()) (*http.Response, error) {
			apply()
			return reply(nil, 200, `{}`), nil
		}, 1, nil},
		{"success of something else, after applying", func(_ int, apply func()) (*http.Response, error) {
			apply()
			return reply(nil, 200, `<html>`), nil
		}, 1, nil},
		{"lands while we repeat", func(n int, apply func()) (*http.Response, error) {
			if n == 2 {
				apply()
				return reply(nil, 412, ""), nil
			}
			return reply(nil, 504, ""), nil
		}, 2, nil},
		{"400", answer(400, `{"error":"bad path"}`), 1, nil},
		{"413", answer(413, ""), 1, nil},
		{"success that names no commit", answer(200, `{}`), 1, wire.ErrNotHub},
		{"success of something else", answer(200, `{"commitOid":"main"}`), 1, wire.ErrNotHub},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newBranchHub(t)
			h.before = tt.before
			c, _ := testClient(t, h)
			done, err := c.Commit(t.Context(), "a/b", "main", CommitRequest{Summary: "s", Parent: testCommit, Ops: testOps})
			permanent := strings.HasPrefix(tt.name, "4") && tt.posts == 1 || tt.want != nil
			if permanent != (err != nil) || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("%v, %d posts", err, h.posts)
			}
			if h.posts != tt.posts || err == nil && done.OID != nextCommit {
				t.Errorf("%d posts, %+v", h.posts, done)
			}
		})
	}
}

func TestCommitConflict(t *testing.T) {
	h := newBranchHub(t)
	h.head = nextCommit // someone else was here
	c, _ := testClient(t, h)
	_, err := c.Commit(t.Context(), "a/b", "main", CommitRequest{Summary: "s", Parent: testCommit, Ops: testOps})
	if !errors.Is(err, wire.ErrConflict) || h.posts != 1 {
		t.Fatalf("%d posts, %v", h.posts, err)
	}
	h.tree = map[string]FileInfo{"a.txt": {BlobID: gitBlobHash([]byte("hello\n"))}, "m.safetensors": {SHA256: shaA}}
	done, err := c.Commit(t.Context(), "a/b", "main", CommitRequest{Summary: "s", Parent: testCommit, Ops: testOps})
	if err != nil || done.OID != nextCommit {
		t.Errorf("everything is there already: %+v, %v", done, err)
	}
}

func TestCreateRepo(t *testing.T) {
	yes := true
	for _, tt := range []struct {
		name     string
		steps    []func(*http.Request) (*http.Response, error)
		private  *bool
		created  bool
		fails    bool
		requests int
	}{
		{"new", []func(*http.Request) (*http.Response, error){says(200, `{"url":"x"}`)}, nil, true, false, 1},
		{"new, private", []func(*http.Request) (*http.Response, error){says(200, `{}`), says(200, `{"sha":"`+testCommit+`","private":true}`)}, &yes, true, false, 2},
		{"new, came out public", []func(*http.Request) (*http.Response, error){says(200, `{}`), says(200, `{"sha":"`+testCommit+`"}`),
			says(200, `{}`), says(200, `{"sha":"`+testCommit+`","private":true}`)}, &yes, true, false, 4},
		{"new, stays public", []func(*http.Request) (*http.Response, error){says(200, `{}`), says(200, `{"sha":"`+testCommit+`"}`)}, &yes, true, true, 4},
		{"exists", []func(*http.Request) (*http.Response, error){says(409, `{"error":"You already created this model repo","url":"https://huggingface.co/a/b"}`)}, &yes, false, false, 1},
		{"busy", []func(*http.Request) (*http.Response, error){says(409, `{"error":"Cannot create repo: another conflicting operation is in progress"}`), says(200, `{}`)}, nil, true, false, 2},
		{"no right, but exists", []func(*http.Request) (*http.Response, error){says(403, `{"error":"no"}`), says(200, `{"sha":"`+testCommit+`"}`)}, nil, false, false, 2},
		{"no right", []func(*http.Request) (*http.Response, error){says(403, `{"error":"no"}`), says(404, ``)}, nil, false, true, 2},
		{"bad name", []func(*http.Request) (*http.Response, error){says(400, `{"error":"bad"}`)}, nil, false, true, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := script(tt.steps...)
			c, _ := testClient(t, w)
			created, err := c.CreateRepo(t.Context(), "a/b", tt.private)
			if created != tt.created || (err != nil) != tt.fails || w.Count() != tt.requests {
				t.Errorf("%v, %v, %d requests", created, err, w.Count())
			}
		})
	}
	c, _ := testClient(t, script(says(200, "{}")))
	if _, err := c.CreateRepo(t.Context(), "a/b--c", nil); err == nil {
		t.Error("a bad name was accepted")
	}
}

func TestBranches(t *testing.T) {
	w := script(says(409, `{"error":"exists"}`), says(200, `{"branches":[{"name":"df11-convert/x"}]}`),
		says(404, "", "X-Error-Code: RevisionNotFound"), says(403, ""))
	c, _ := testClient(t, w)
	if err := c.CreateBranch(t.Context(), "a/b", "df11-convert/x", testCommit); err != nil {
		t.Error(err)
	}
	if err := c.DeleteBranch(t.Context(), "a/b", "df11-convert/x"); err != nil {
		t.Error(err)
	}
	if err := c.DeleteBranch(t.Context(), "a/b", "df11-convert/x"); !errors.Is(err, wire.ErrForbidden) {
		t.Error(err)
	}
	if got := w.Seen[0].URL.EscapedPath(); got != "/api/models/a/b/branch/df11-convert%2Fx" || w.Seen[2].Method != "DELETE" {
		t.Error(got)
	}
}

func TestValidateCard(t *testing.T) {
	w := script(says(200, `{"errors":[],"warnings":[{"message":"no license"}]}`),
		says(400, `{"errors":[{"message":"\"license\" must be a string"}],"warnings":[]}`))
	c, _ := testClient(t, w)
	if warnings, err := c.ValidateCard(t.Context(), []byte("x")); err != nil || len(warnings) != 1 || warnings[0] != "no license" {
		t.Error(warnings, err)
	}
	if _, err := c.ValidateCard(t.Context(), []byte("x")); !errors.Is(err, wire.ErrInvalidCard) || !strings.Contains(err.Error(), "license") {
		t.Error(err)
	}
}

func TestCheckAccess(t *testing.T) {
	w := script(says(200, ""), says(403, "", "X-Error-Code: GatedRepo"))
	c, _ := testClient(t, w)
	if err := c.CheckAccess(t.Context(), "a/b"); err != nil || w.Seen[0].URL.Path != "/api/models/a/b/auth-check/write" {
		t.Error(err)
	}
	if err := c.CheckAccess(t.Context(), "a/b"); !errors.Is(err, wire.ErrGated) {
		t.Error(err)
	}
}

func TestBranchNames(t *testing.T) {
	w := script(says(200, `{"branches":[{"name":"main","ref":"refs/heads/main","targetCommit":"`+testCommit+`"}],"converts":[],"tags":[]}`))
	c, _ := testClient(t, w)
	names, err := c.Branches(t.Context(), "a/b")
	if err != nil || len(names) != 1 || names[0] != "main" {
		t.Errorf("%v, %v", names, err)
	}
}
