package hubtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestWays asks a server with each of the ways the same as the Hub, and compares both answers: a way
// that's as kind as the Hub tests nothing.
func TestWays(t *testing.T) {
	const repo, large = "/api/models/me/m", "w.safetensors"
	status := func(method, path, body string) func(*testing.T, *Server) string {
		return func(t *testing.T, s *Server) string {
			return fmt.Sprint(ask(t, method, s.URL+path, "tok", body).status)
		}
	}
	holds := func(method, path, body, part string) func(*testing.T, *Server) string {
		return func(t *testing.T, s *Server) string {
			a := ask(t, method, s.URL+path, "tok", body)
			return fmt.Sprint(a.status, " ", strings.Contains(a.body, part))
		}
	}
	commit := func(t *testing.T, s *Server, branch, file, content string) {
		t.Helper()
		if !s.repos["me/m"].holds[world.Sum([]byte(content))] {
			upload(t, s, "me/m", []byte(content))
		}
		must(t, "POST", s.URL+repo+"/commit/"+branch, "tok", commitBody(lfsLine(file, []byte(content))))
	}
	// listed is what main lists of the large file, and what it has
	listed := func(t *testing.T, s *Server) string {
		t.Helper()
		for _, e := range decode[[]struct {
			Path string
			Size int64
			LFS  struct{ OID string }
		}](t, must(t, "GET", s.URL+repo+"/tree/main", "", "").body) {
			if e.Path == large {
				return fmt.Sprintf("%d bytes, %.4s, %s", e.Size, e.LFS.OID, must(t, "GET", location(t, s, "me/m", large), "", "").body)
			}
		}
		return "gone"
	}
	for field, tc := range map[string]struct {
		try      func(*testing.T, *Server) string
		hub, way string
	}{
		"LongCommits": {func(_ *testing.T, s *Server) string { return fmt.Sprint(len(s.Head("me/m", "main"))) }, "40", "64"},
		"AnswersHead": {func(t *testing.T, s *Server) string {
			head, get := ask(t, "HEAD", s.URL+"/me/m/resolve/main/"+large, "", ""), ask(t, "GET", s.URL+"/me/m/resolve/main/"+large, "", "")
			return fmt.Sprint(head.status, " ", get.status, " ", head.header.Get("X-Linked-Size"))
		}, "302 302 5", "200 302 5"},
		"NoHashes": {holds("POST", repo+"/preupload/main", `{"files":[{"path":"w.safetensors","sample":"Zmlyc3Q=","size":5}]}`, `"oid":`), "200 true", "200 false"},
		"NoTracking": {func(t *testing.T, s *Server) string {
			commit(t, s, "main", "x.dat", "large")
			return fmt.Sprint(strings.Contains(must(t, "GET", s.URL+"/me/m/resolve/main/.gitattributes", "", "").body, "x.dat"))
		}, "true", "false"},
		"NoSizes":   {holds("GET", repo+"?blobs=true", "", `"size":5`), "200 true", "200 false"},
		"NoSlashes": {status("POST", repo+"/branch/work%2F1", "{}"), "200", "404"},
		"Details": {func(t *testing.T, s *Server) string {
			a := ask(t, "GET", s.URL+repo+"/revision/nope", "", "")
			return fmt.Sprint(strings.HasPrefix(a.body, `{"detail":{`), " ", a.header.Get("X-Error-Message"))
		}, "false Invalid rev id: nope", "true "},
		"Stale500": {status("POST", repo+"/commit/main", `{"key":"header","value":{"summary":"s","parentCommit":"`+strings.Repeat("0", 40)+`"}}`), "412", "500"},
		"EmptySHA": {holds("GET", repo+"/revision/nope", "", `"sha":""`), "404 false", "200 true"},
		"OldSizes": {func(t *testing.T, s *Server) string {
			commit(t, s, "main", large, "one")
			commit(t, s, "main", large, "other")
			return listed(t, s)
		}, "5 bytes, d929, other", "3 bytes, d929, other"},
		"OneRow": {func(t *testing.T, s *Server) string {
			s.CreateBranch("me/m", "work", "main")
			commit(t, s, "work", large, "second")
			commit(t, s, "main", large, "second")
			return listed(t, s)
		}, "6 bytes, 1636, second", "5 bytes, 1636, first"},
		"SendsOn": {func(t *testing.T, s *Server) string {
			up := batch(t, s, "me/m", []byte("large")).Actions["upload"]
			sent := ask(t, "PUT", up.Href, strings.TrimPrefix(up.Header["Authorization"], "Bearer "), "large")
			return fmt.Sprint(sent.status, " ", strings.HasPrefix(up.Href, s.URL), " ", strings.HasPrefix(sent.header.Get("Location"), s.CDNURL))
		}, "200 false false", "307 true true"},
		"MakesOver": {status("POST", "/api/repos/create", `{"name":"m","organization":"me"}`), "409", "200"},
		"ReadOnly":  {status("POST", "/api/repos/create", `{"name":"n","organization":"me"}`), "200", "405"},
	} {
		var ways Ways
		way := reflect.ValueOf(&ways).Elem().FieldByName(field)
		if !way.IsValid() {
			t.Errorf("there is no %s", field)
			continue
		}
		way.SetBool(true)
		for w, want := range map[Ways]string{{}: tc.hub, ways: tc.way} {
			s := Start(t, WithWays(w))
			s.AddRepo("me/m", map[string][]byte{large: []byte("first"), "README.md": []byte("# x\n")})
			if got := tc.try(t, s); got != want {
				t.Errorf("%s %v: got %s, want %s", field, w == ways, got, want)
			}
		}
	}
	if n := reflect.TypeFor[Ways]().NumField(); n != 14 {
		t.Errorf("there are %d ways; try each", n)
	}
}

// TestFullStorage: KohakuHub's word for a full storage is another status.
func TestFullStorage(t *testing.T) {
	for ways, want := range map[Ways]int{{}: 403, {Details: true}: 413} {
		s := Start(t, WithWays(ways))
		s.AddRepo("me/m", map[string][]byte{"README.md": []byte("# x\n")})
		f, err := ParseFault("batch-quota")
		if err != nil {
			t.Fatal(err)
		}
		s.Inject(f)
		a := ask(t, "POST", s.URL+"/me/m.git/info/lfs/objects/batch", "tok", batchBody([]byte("x")))
		if !json.Valid([]byte(a.body)) || a.status != want {
			t.Errorf("%+v: %d %s", ways, a.status, a.body)
		}
	}
}
