package hubtest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

func TestListDiscussions(t *testing.T) {
	s := Start(t, WithUser("owner", User{Name: "me"}), WithUser("guest", User{Name: "bob"}))
	s.AddRepo("me/m", nil)
	for i := range discussionsPage + 1 {
		token := "guest"
		if i == discussionsPage {
			token = "owner"
		}
		resp, body := do(t, "POST", s.URL+"/api/models/me/m/commit/main?create_pr=1", token, commitBody(fileLine("a", "1")))
		want(t, resp, body, 200, "")
	}
	s.ClosePullRequest("me/m", 3)
	type page struct {
		Discussions  []struct{ Num int }
		Count, Start int
	}
	for query, wanted := range map[string]page{
		"":                              {Count: 51, Discussions: make([]struct{ Num int }, 50)},
		"?p=1":                          {Count: 51, Start: 50, Discussions: []struct{ Num int }{{1}}},
		"?p=2&type=pull_request":        {Count: 51, Start: 100},
		"?status=closed":                {Count: 1, Discussions: []struct{ Num int }{{3}}},
		"?author=me&type=pull_request":  {Count: 1, Discussions: []struct{ Num int }{{51}}},
		"?type=discussion":              {},
		"?author=nobody&status=open&p=": {},
	} {
		resp, body := do(t, "GET", s.URL+"/api/models/me/m/discussions"+query, "", "")
		want(t, resp, body, 200, "")
		got := decode[page](t, body)
		if got.Count != wanted.Count || got.Start != wanted.Start || len(got.Discussions) != len(wanted.Discussions) ||
			len(wanted.Discussions) == 1 && got.Discussions[0] != wanted.Discussions[0] {
			t.Errorf("%s: got %+v", query, got)
		}
	}
	for path, status := range map[string]int{"?p=x": 400, "/3": 200, "/52": 404} {
		resp, body := do(t, "GET", s.URL+"/api/models/me/m/discussions"+path, "", "")
		if want(t, resp, body, status, ""); status == 200 && decode[map[string]any](t, body)["status"] != "closed" {
			t.Errorf("%s: %s", path, body)
		}
	}
}

func TestStateFromOutside(t *testing.T) {
	s := Start(t)
	first := s.AddRepo("me/m", map[string][]byte{"a.txt": []byte("1")})
	s.Push("me/m", "main", map[string][]byte{"a.txt": []byte("2")})
	s.CreateBranch("me/m", "refs/tags/v1", first)
	s.Push("me/m", "work", map[string][]byte{"w.txt": []byte("w")})
	refs := s.Refs("me/m")
	if len(refs) != 3 || refs["refs/tags/v1"] != first || s.Head("me/m", "v1") != first || len(s.Files("me/m", "work")) != 1 {
		t.Errorf("refs: %v", refs)
	}
	s.Configure("me/m", Private(), Gated("auto"))
	resp, body := do(t, "GET", s.URL+"/api/models/me/m", "", "")
	want(t, resp, body, 401, codeRepoNotFound)
	if q := s.Requests(); len(q) != 1 || q[0].Header.Get("Authorization") != "" || q[0].Status != 401 {
		t.Errorf("log: %+v", q)
	}
	s.ResetLog()
	if len(s.Requests()) != 0 || s.Files("me/none", "main") != nil || s.Head("me/m", "none") != "" {
		t.Error("what is not there must be empty")
	}
	if _, err := s.ReadFile("me/m", "main", "none"); err == nil {
		t.Error("no error for a missing file")
	}
}

func TestAddGenerated(t *testing.T) {
	s := Start(t)
	data := bytes.Repeat([]byte("x"), 3<<20)
	head, err := s.AddGenerated("me/m", "w.safetensors", int64(len(data)), "", bytes.NewReader(data))
	if err != nil || s.Head("me/m", "main") != head || s.Files("me/m", "main")["w.safetensors"].SHA256 != sha(data) {
		t.Fatal(head, err)
	}
	if _, err := s.AddGenerated("me/m", "short", 10, "", bytes.NewReader(nil)); err == nil {
		t.Error("a body that ends early must be refused")
	}
	claimed := strings.Repeat("a", 64)
	if _, err := s.AddGenerated("me/m", "lie", 3, claimed, bytes.NewReader([]byte("abc"))); err != nil {
		t.Fatal(err)
	}
	resp, body := do(t, "GET", location(t, s, "me/m", "lie"), "", "")
	if want(t, resp, body, 200, ""); body != "abc" || s.Files("me/m", "main")["lie"].SHA256 != claimed {
		t.Errorf("body %q", body)
	}
}

// TestCloseEndsStalls closes the server under a stalled answer.
func TestCloseEndsStalls(t *testing.T) {
	s := New()
	s.AddRepo("me/m", nil)
	s.Inject(Fault{Name: "hub-stall"})
	done := make(chan error, 1)
	go func() { done <- try(context.Background(), "GET", s.URL+"/api/models/me/m", "").err }()
	for len(s.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	if err := <-done; err == nil {
		t.Error("the stalled request ended well")
	}
	s.Close()
}

// TestPanicIsRecorded wants a broken fault action, or route, to be noticed.
func TestPanicIsRecorded(t *testing.T) {
	s := New()
	defer s.Close()
	s.Inject(Fault{Action: func(*Exchange) { panic("broken") }})
	if o := try(t.Context(), "GET", s.URL+"/x", ""); o.err == nil {
		t.Error("no error")
	}
	if v := s.Violations(); len(v) != 1 || !strings.Contains(v[0], "broken") {
		t.Errorf("violations: %q", v)
	}
}
