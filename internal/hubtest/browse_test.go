package hubtest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

type treeEntry struct {
	Type, Path, OID string
	Size            int64
	LFS             *struct {
		OID         string
		Size        int64
		PointerSize int
	}
	XetHash string
}

// pages follows the Link headers from url on.
func pages(t *testing.T, url string) (list []treeEntry, n int) {
	t.Helper()
	for url != "" {
		resp, body := do(t, "GET", url, "", "")
		want(t, resp, body, http.StatusOK, "")
		list = append(list, decode[[]treeEntry](t, body)...)
		n++
		link := resp.Header.Get("Link")
		url, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	return list, n
}

func paths(list []treeEntry) (out []string) {
	for _, e := range list {
		out = append(out, e.Path)
	}
	return out
}

func TestTree(t *testing.T) {
	s := Start(t, WithPageSize(4), WithXetHashes())
	files := LlamaModel(3, ModelOptions{ShardBytes: 100_000, ExtraFiles: true})
	s.AddRepo("org/m", files)
	all, n := pages(t, s.URL+"/api/models/org/m/tree/main?recursive=true&expand=false")
	var got []string
	for _, e := range all {
		if e.Type == "file" {
			got = append(got, e.Path)
			checkEntry(t, e, files[e.Path])
		}
	}
	if wanted := slices.Sorted(maps.Keys(files)); !slices.Equal(got, wanted) {
		t.Errorf("got %q, want %q", got, wanted)
	}
	if n != (len(all)+3)/4 {
		t.Errorf("%d entries came on %d pages", len(all), n)
	}
	top, _ := pages(t, s.URL+"/api/models/org/m/tree/main")
	if p := paths(top); slices.Contains(p, "original/params.json") || !slices.Contains(p, "original") {
		t.Errorf("top level: %q", p)
	}
	below, _ := pages(t, s.URL+"/api/models/org/m/tree/main/special%2F%C3%BCber?recursive=true")
	if len(below) != 1 {
		t.Errorf("escaped folder: %+v", below)
	}
	resp, body := do(t, "GET", s.URL+"/api/models/org/m/tree/main?cursor=x", "", "")
	want(t, resp, body, http.StatusBadRequest, "")
}

func checkEntry(t *testing.T, e treeEntry, content []byte) {
	t.Helper()
	if e.Size != int64(len(content)) {
		t.Errorf("%s: size %d, want %d", e.Path, e.Size, len(content))
	}
	oid := blobID(content)
	if e.LFS != nil {
		p := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", sha(content), len(content))
		oid = blobID([]byte(p))
		if e.LFS.OID != sha(content) || e.LFS.PointerSize != len(p) || len(e.XetHash) != 64 {
			t.Errorf("%s: %+v", e.Path, e.LFS)
		}
	}
	if e.OID != oid {
		t.Errorf("%s: oid %s, want %s", e.Path, e.OID, oid)
	}
}

func TestBlobIDIsGits(t *testing.T) {
	// printf 'hello\n' | git hash-object --stdin
	if got := blobID([]byte("hello\n")); got != "ce013625030ba8dba906f756967f9e9ca394464a" {
		t.Errorf("got %s", got)
	}
	if got := blobID(nil); got != "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391" {
		t.Errorf("empty: got %s", got)
	}
}

func TestModelInfo(t *testing.T) {
	s := Start(t)
	files := LlamaModel(3, ModelOptions{})
	head := s.AddRepo("org/m", files, Gated("auto"))
	type info struct {
		ID, SHA, Gated string
		PipelineTag    string `json:"pipeline_tag"`
		Siblings       []struct {
			RFilename, BlobID string
			Size              *int64
			LFS               *struct{ SHA256 string }
		}
	}
	resp, body := do(t, "GET", s.URL+"/api/models/org/m/revision/"+head+"?blobs=true", "", "")
	want(t, resp, body, http.StatusOK, "")
	got := decode[info](t, body)
	if got.ID != "org/m" || got.SHA != head || got.Gated != "auto" || got.PipelineTag != "text-generation" {
		t.Errorf("info: %+v", got)
	}
	for _, f := range got.Siblings {
		if f.RFilename == "model.safetensors" && (f.LFS == nil || f.LFS.SHA256 != sha(files[f.RFilename])) {
			t.Errorf("sibling: %+v", f)
		}
	}
	resp, body = do(t, "GET", s.URL+"/api/models/org/m", "", "")
	want(t, resp, body, http.StatusOK, "")
	if f := decode[info](t, body).Siblings[0]; f.Size != nil || f.RFilename == "" {
		t.Errorf("sizes come only with blobs: %+v", f)
	}
	resp, body = do(t, "GET", s.URL+"/api/models/org/m?expand=private&expand=sha", "", "")
	want(t, resp, body, http.StatusOK, "")
	if m := decode[map[string]any](t, body); len(m) != 4 || m["sha"] != head {
		t.Errorf("expand: %v", m)
	}
	resp, body = do(t, "GET", s.URL+"/api/models/org/m?expand=sha&blobs=true", "", "")
	want(t, resp, body, http.StatusBadRequest, "")
}

func TestPathsInfo(t *testing.T) {
	s := Start(t)
	s.AddRepo("org/m", map[string][]byte{"a.txt": []byte("a"), "d/b.txt": []byte("b")})
	form := url.Values{"paths": {"d/b.txt", "none", "d"}}.Encode()
	resp, body := do(t, "POST", s.URL+"/api/models/org/m/paths-info/main", "", form, "Content-Type", "application/x-www-form-urlencoded")
	want(t, resp, body, http.StatusOK, "")
	if got := paths(decode[[]treeEntry](t, body)); !slices.Equal(got, []string{"d/b.txt", "d"}) {
		t.Errorf("got %q", got)
	}
	many := url.Values{"paths": slices.Repeat([]string{"x"}, 1001)}.Encode()
	resp, body = do(t, "POST", s.URL+"/api/models/org/m/paths-info/main", "", many, "Content-Type", "application/x-www-form-urlencoded")
	want(t, resp, body, http.StatusRequestEntityTooLarge, "")
}

func TestRawPointer(t *testing.T) {
	s := Start(t)
	s.AddRepo("org/m", map[string][]byte{"w.safetensors": []byte("weights")})
	resp, body := do(t, "GET", s.URL+"/org/m/raw/main/w.safetensors", "", "")
	want(t, resp, body, http.StatusOK, "")
	if !strings.HasPrefix(body, "version https://git-lfs.github.com/spec/v1\noid sha256:"+sha([]byte("weights"))) {
		t.Errorf("got %q", body)
	}
}

func TestRanges(t *testing.T) {
	s := Start(t)
	s.AddRepo("org/m", map[string][]byte{"a.txt": []byte("0123456789")})
	u := s.URL + "/org/m/resolve/main/a.txt"
	for _, tc := range []struct {
		ask, body, contentRange string
		status                  int
	}{
		{"", "0123456789", "", 200},
		{"bytes=0-0", "0", "bytes 0-0/10", 206},
		{"bytes=4-", "456789", "bytes 4-9/10", 206},
		{"bytes=-3", "789", "bytes 7-9/10", 206},
		{"bytes=8-99", "89", "bytes 8-9/10", 206},
		{"bytes=10-", "invalid range: failed to overlap\n", "bytes */10", 416},
	} {
		var header []string
		if tc.ask != "" {
			header = []string{"Range", tc.ask}
		}
		resp, body := do(t, "GET", u, "", "", header...)
		if resp.StatusCode != tc.status || body != tc.body || resp.Header.Get("Content-Range") != tc.contentRange {
			t.Errorf("%q: %d %q %q", tc.ask, resp.StatusCode, body, resp.Header.Get("Content-Range"))
		}
		head, _ := do(t, "HEAD", u, "", "", header...)
		for _, k := range []string{"Etag", "Content-Length", "Content-Range", "X-Repo-Commit", "Accept-Ranges"} {
			if tc.status != 416 && head.Header.Get(k) != resp.Header.Get(k) {
				t.Errorf("%q: HEAD has %s %q, GET has %q", tc.ask, k, head.Header.Get(k), resp.Header.Get(k))
			}
		}
	}
}

// TestXetHeaders: downloads of large files carry what a Xet client goes by, if the hub shows Xet hashes at all.
func TestXetHeaders(t *testing.T) {
	for _, shown := range []bool{true, false} {
		var opts []Option
		if shown {
			opts = append(opts, WithXetHashes())
		}
		s := Start(t, opts...)
		commit := s.AddRepo("me/m", map[string][]byte{"a.safetensors": []byte("weights"), "config.json": []byte("{}")})
		resp, _ := do(t, "HEAD", s.URL+"/me/m/resolve/main/a.safetensors", "t", "")
		hash, link := resp.Header.Get("X-Xet-Hash"), resp.Header.Get("Link")
		auth := "<" + s.URL + "/api/models/me/m/xet-read-token/" + commit + `>; rel="xet-auth"`
		if sha256Hex.MatchString(hash) != shown || strings.Contains(link, auth) != shown || hash == resp.Header.Get("X-Linked-Etag") && shown {
			t.Errorf("shown %v: hash %q, links %q", shown, hash, link)
		}
		if resp, _ := do(t, "HEAD", s.URL+"/me/m/resolve/main/config.json", "t", ""); resp.Header.Get("X-Xet-Hash") != "" {
			t.Error("a small file has a Xet hash")
		}
	}
}
