package hubtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// do sends one request without following redirects and returns status, header
// and body.
func do(t *testing.T, method, url, token, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(data)
}

func want(t *testing.T, resp *http.Response, body string, status int, code string) {
	t.Helper()
	if resp.StatusCode != status || resp.Header.Get("X-Error-Code") != code {
		t.Fatalf("%s %s: got %d %q, want %d %q; body %s", resp.Request.Method, resp.Request.URL.Path,
			resp.StatusCode, resp.Header.Get("X-Error-Code"), status, code, body)
	}
}

func decode[T any](t *testing.T, body string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestDownload(t *testing.T) {
	s := Start(t)
	files := LlamaModel(1, ModelOptions{})
	head := s.AddRepo("org/tiny", files)
	weights := files["model.safetensors"]
	url := s.URL + "/org/tiny/resolve/main/model.safetensors"
	resp, body := do(t, "HEAD", url, "tok", "")
	want(t, resp, body, http.StatusFound, "")
	for k, v := range map[string]string{"X-Repo-Commit": head, "X-Linked-Etag": `"` + sha(weights) + `"`, "X-Linked-Size": fmt.Sprint(len(weights))} {
		if got := resp.Header.Get(k); got != v {
			t.Errorf("%s: got %s, want %s", k, got, v)
		}
	}
	location := resp.Header.Get("Location")
	if !strings.HasPrefix(location, "http://localhost:") {
		t.Fatalf("location %s is not on the second host", location)
	}
	resp, body = do(t, "GET", location, "", "", "Range", "bytes=100-199")
	want(t, resp, body, http.StatusPartialContent, "")
	if body != string(weights[100:200]) || resp.Header.Get("Content-Range") != fmt.Sprintf("bytes 100-199/%d", len(weights)) {
		t.Error("wrong range")
	}
	resp, body = do(t, "GET", location, "", "", "Range", fmt.Sprintf("bytes=%d-", len(weights)))
	want(t, resp, body, http.StatusRequestedRangeNotSatisfiable, "")
	resp, body = do(t, "GET", s.URL+"/org/tiny/resolve/"+head+"/LICENSE", "", "")
	want(t, resp, body, http.StatusOK, "")
	if body != string(files["LICENSE"]) || resp.Header.Get("ETag") != `"`+blobID(files["LICENSE"])+`"` {
		t.Error("wrong git file")
	}
	resp, body = do(t, "GET", s.URL+"/org/tiny/resolve/main/config.json", "", "")
	want(t, resp, body, http.StatusTemporaryRedirect, "")
	resp, body = do(t, "GET", s.URL+resp.Header.Get("Location"), "", "")
	want(t, resp, body, http.StatusOK, "")
	if body != string(files["config.json"]) {
		t.Error("wrong body behind the resolve cache")
	}
}

func TestLeakIsRecorded(t *testing.T) {
	s := New()
	defer s.Close()
	s.AddRepo("org/tiny", LlamaModel(1, ModelOptions{}))
	resp, _ := do(t, "HEAD", s.URL+"/org/tiny/resolve/main/model.safetensors", "tok", "")
	resp, body := do(t, "GET", resp.Header.Get("Location"), "tok", "", "Range", "bytes=0-")
	want(t, resp, body, http.StatusBadRequest, "")
	if len(s.Violations()) != 1 {
		t.Errorf("violations: %v", s.Violations())
	}
}

// upload sends data by the LFS route that the batch call names.
func upload(t *testing.T, s *Server, repo string, data []byte) {
	t.Helper()
	q := fmt.Sprintf(`{"operation":"upload","transfers":["basic","multipart"],"objects":[{"oid":%q,"size":%d}],"hash_algo":"sha256"}`, sha(data), len(data))
	resp, body := do(t, "POST", s.URL+"/"+repo+".git/info/lfs/objects/batch", "tok", q)
	want(t, resp, body, http.StatusOK, "")
	answer := decode[struct {
		Objects []struct {
			Actions map[string]struct {
				Href   string
				Header map[string]string
			}
		}
	}](t, body)
	up, ok := answer.Objects[0].Actions["upload"]
	if !ok {
		return
	}
	if up.Header["chunk_size"] == "" {
		resp, body = do(t, "PUT", up.Href, "", string(data))
		want(t, resp, body, http.StatusOK, "")
	} else {
		uploadParts(t, up.Href, up.Header, data)
	}
	verify := answer.Objects[0].Actions["verify"].Href
	resp, body = do(t, "POST", verify, "tok", fmt.Sprintf(`{"oid":%q,"size":%d}`, sha(data), len(data)))
	want(t, resp, body, http.StatusOK, "")
}

func uploadParts(t *testing.T, href string, header map[string]string, data []byte) {
	t.Helper()
	var chunk int
	fmt.Sscan(header["chunk_size"], &chunk)
	n := len(header) - 1
	etags := make([]string, n)
	for i := n; i > 0; i-- { // the last part first: order must not matter
		part := data[(i-1)*chunk : min(i*chunk, len(data))]
		resp, body := do(t, "PUT", header[fmt.Sprintf("%05d", i)], "", string(part))
		want(t, resp, body, http.StatusOK, "")
		etags[i-1] = fmt.Sprintf(`{"partNumber":%d,"etag":%q}`, i, resp.Header.Get("ETag"))
	}
	q := fmt.Sprintf(`{"oid":%q,"parts":[%s]}`, sha(data), strings.Join(etags, ","))
	for range 2 { // a repeated completion is no error
		resp, body := do(t, "POST", href, "", q)
		want(t, resp, body, http.StatusOK, "")
	}
}

func commitBody(lines ...string) string {
	return `{"key":"header","value":{"summary":"add","description":""}}` + "\n" + strings.Join(lines, "\n")
}

func lfsLine(path string, data []byte) string {
	return fmt.Sprintf(`{"key":"lfsFile","value":{"path":%q,"algo":"sha256","oid":%q,"size":%d}}`, path, sha(data), len(data))
}

func fileLine(path, content string) string {
	return fmt.Sprintf(`{"key":"file","value":{"path":%q,"content":%q,"encoding":"base64"}}`, path, base64.StdEncoding.EncodeToString([]byte(content)))
}

func TestUpload(t *testing.T) {
	for name, opts := range map[string][]Option{
		"basic":     nil,
		"multipart": {WithMultipart(1, 1000)},
		"dropped":   {WithMultipart(1, 1000), WithDropUploads()},
		"dropped 1": {WithDropUploads()},
		"folder":    {WithMultipart(1, 1000), WithPushDir(t.TempDir())},
		"folder 1":  {WithPushDir(t.TempDir())},
	} {
		t.Run(name, func(t *testing.T) {
			s := Start(t, opts...)
			resp, body := do(t, "POST", s.URL+"/api/repos/create", "tok", `{"name":"out","organization":"me"}`)
			want(t, resp, body, http.StatusOK, "")
			data := bytes.Repeat([]byte("weights "), 1234)
			upload(t, s, "me/out", data)
			resp, body = do(t, "POST", s.URL+"/api/models/me/out/commit/main", "tok",
				commitBody(lfsLine("a/model.safetensors", data), fileLine("config.json", "{}")))
			want(t, resp, body, http.StatusOK, "")
			files := s.Files("me/out", "main")
			if f := files["a/model.safetensors"]; f.SHA256 != sha(data) || f.Size != int64(len(data)) {
				t.Errorf("committed %+v", f)
			}
			got, err := s.ReadFile("me/out", "main", "a/model.safetensors")
			if dropped := err != nil; dropped != strings.HasPrefix(name, "dropped") || !dropped && !bytes.Equal(got, data) {
				t.Errorf("read back: %d bytes, %v", len(got), err)
			}
		})
	}
}
