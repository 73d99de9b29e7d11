package hubtest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

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
