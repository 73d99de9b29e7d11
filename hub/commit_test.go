package hub

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestCommitBody(t *testing.T) {
	const next = "fedcba9876543210fedcba9876543210fedcba98"
	var body []byte
	w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		body, _ = io.ReadAll(r.Body)
		return reply(r, 200, `{"success":true,"commitOid":"`+next+`"}`), nil
	}}
	c, _ := testClient(t, w)
	ops := []Op{FileOp("a.txt", []byte("hello\n")), LFSOp("m.safetensors", shaA, 5), DeleteOp("old.txt")}
	done, err := c.Commit(t.Context(), "a/b", "main", CommitRequest{Parent: testCommit, Summary: "s <&>", Description: "d", Ops: ops})
	if err != nil || done.OID != next {
		t.Fatalf("%+v, %v", done, err)
	}
	want := `{"key":"header","value":{"description":"d","parentCommit":"` + testCommit + `","summary":"s <&>"}}
{"key":"file","value":{"content":"aGVsbG8K","encoding":"base64","path":"a.txt"}}
{"key":"lfsFile","value":{"algo":"sha256","oid":"` + shaA + `","path":"m.safetensors","size":5}}
{"key":"deletedFile","value":{"path":"old.txt"}}
`
	if string(body) != want {
		t.Errorf("got %s", body)
	}
	if done, err = c.Commit(t.Context(), "a/b", "main", CommitRequest{Parent: testCommit}); err != nil || done.OID != testCommit || w.Count() != 1 {
		t.Errorf("a commit without changes: %+v, %v", done, err)
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
		{"new, private", []func(*http.Request) (*http.Response, error){says(200, `{}`)}, &yes, true, false, 1},
		{"exists", []func(*http.Request) (*http.Response, error){says(409, `{"error":"You already created this model repo","url":"https://huggingface.co/a/b"}`)}, &yes, false, false, 1},
		{"busy", []func(*http.Request) (*http.Response, error){says(409, `{"error":"Cannot create repo: another conflicting operation is in progress"}`), says(200, `{}`)}, nil, true, false, 2},
		{"no right", []func(*http.Request) (*http.Response, error){says(403, `{"error":"no"}`), says(200, `{"name":"a","auth":{"accessToken":{"role":"write"}}}`)}, nil, false, true, 2},
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

func TestValidateCard(t *testing.T) {
	w := script(says(200, `{"errors":[],"warnings":[{"message":"no license"}]}`),
		says(400, `{"errors":[{"message":"\"license\" must be a string"}],"warnings":[]}`), says(404, ""))
	c, _ := testClient(t, w)
	for i, want := range []string{"", `"license" must be a string`, ""} {
		err := c.ValidateCard(t.Context(), []byte("x"))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("answer %d: %v", i, err)
		}
	}
}

// TestTheOwnerIsAskedOnceForHints checks that a question whose answer only explains a refusal is
// asked once, without repeats, also if the hub doesn't answer it, and that the owner's name is
// still asked for in earnest.
func TestTheOwnerIsAskedOnceForHints(t *testing.T) {
	asked, answers := 0, false
	w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		switch {
		case r.URL.Path != "/api/whoami-v2":
			return reply(r, 403, `{"error":"no"}`), nil
		case answers:
			return reply(r, 200, okUser), nil
		}
		asked++
		return reply(r, 503, ""), nil
	}}
	c, clock := testClient(t, w)
	began := clock.Now()
	for _, repo := range []string{"a/b", "a/c"} {
		if err := c.CheckRight(t.Context(), repo, false); err != nil {
			t.Error(err)
		}
		if _, err := c.CreateRepo(t.Context(), repo, nil); !errors.Is(err, ErrForbidden) {
			t.Error(err)
		}
		if err := c.CheckRight(t.Context(), repo, true); !errors.Is(err, ErrForbidden) {
			t.Error(err)
		}
	}
	if waited := clock.Now().Sub(began); asked != 1 || waited != 0 {
		t.Errorf("asked %d times, and waited for %v", asked, waited)
	}
	answers = true
	if name, err := c.WhoAmI(t.Context()); name != "me" || err != nil {
		t.Error(name, err)
	}
}

func TestCheckAccess(t *testing.T) {
	w := script(says(200, ""), says(403, "", "X-Error-Code: GatedRepo"), says(404, ""), says(403, ""),
		says(200, `{"name":"a","auth":{"accessToken":{"role":"read"}}}`))
	c, _ := testClient(t, w)
	for i, want := range []error{nil, ErrGated, errReadToken} {
		if err := c.CheckAccess(t.Context(), "a/b"); !errors.Is(err, want) {
			t.Errorf("answer %d: %v", i, err)
		}
	}
	if w.Seen[0].URL.Path != "/api/models/a/b/auth-check/write" || w.Count() != 5 {
		t.Error(w.Seen[0].URL, w.Count())
	}
}

// TestABranchThatAnotherRemoves checks that a run doesn't wait for minutes to delete a branch that
// another one has deleted meanwhile, on a server that answers 500 to that.
func TestABranchThatAnotherRemoves(t *testing.T) {
	failed := says(500, `{"error":"Failed to delete branch"}`)
	for name, steps := range map[string][]func(*http.Request) (*http.Response, error){
		"gone":  {failed, says(404, "", "X-Error-Code: RevisionNotFound")},
		"there": {failed, says(200, `{"id":"a/b","sha":"`+strings.Repeat("1", 40)+`"}`), says(200, "")},
	} {
		w := script(steps...)
		c, clock := testClient(t, w)
		if err := c.DeleteBranch(t.Context(), "a/b", "work"); err != nil || w.Count() != len(steps) || clock.Waited() > 0 {
			t.Errorf("%s: %v after %d requests", name, err, w.Count())
		}
	}
}
