package hubtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answer is what a client sees of one request.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of the request, or of reading the body
}

// code is the hub's word for an error.
func (a answer) code() string { return a.header.Get("X-Error-Code") }

// ask sends one request without following redirects. The header has names and values in turn.
func ask(t *testing.T, method, url, token, body string, header ...string) (a answer) {
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
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(data), err}
}

// must is ask for a request that has to succeed with 200, 206 or a redirect.
func must(t *testing.T, method, url, token, body string, header ...string) answer {
	t.Helper()
	a := ask(t, method, url, token, body, header...)
	if a.err != nil || a.status >= 400 {
		t.Fatalf("%s %s: %d %s %v", method, url, a.status, a.body, a.err)
	}
	return a
}

func decode[T any](t *testing.T, body string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

// location asks for the signed URL of a file.
func location(t *testing.T, s *Server, repo, path string) string {
	t.Helper()
	return must(t, "HEAD", s.URL+"/"+repo+"/resolve/main/"+path, "", "").header.Get("Location")
}

type batchAnswer struct {
	Actions map[string]struct {
		Href   string
		Header map[string]string
	}
	Error *struct{ Code int }
}

// batch asks for the upload of one object and returns its part of the answer.
func batch(t *testing.T, s *Server, repo string, data []byte) batchAnswer {
	t.Helper()
	return decode[struct{ Objects []batchAnswer }](t, must(t, "POST", s.URL+"/"+repo+".git/info/lfs/objects/batch", "tok", batchBody(data)).body).Objects[0]
}

func batchBody(data []byte) string {
	return fmt.Sprintf(`{"operation":"upload","transfers":["basic","multipart"],"objects":[{"oid":%q,"size":%d}],"hash_algo":"sha_256"}`, world.Sum(data), len(data))
}

// putParts uploads the parts of a multipart upload, the last one first, and returns the body of the
// completion.
func putParts(t *testing.T, header map[string]string, data []byte) string {
	t.Helper()
	var chunk int
	fmt.Sscan(header["chunk_size"], &chunk)
	parts := make([]string, len(header)-1)
	for i := len(parts) - 1; i >= 0; i-- {
		a := must(t, "PUT", header[fmt.Sprintf("%05d", i+1)], "", string(data[i*chunk:min((i+1)*chunk, len(data))]))
		parts[i] = fmt.Sprintf(`{"partNumber":%d,"etag":%q}`, i+1, a.header.Get("ETag"))
	}
	return fmt.Sprintf(`{"oid":%q,"parts":[%s]}`, world.Sum(data), strings.Join(parts, ","))
}

// upload sends data by the LFS route that the batch call names.
func upload(t *testing.T, s *Server, repo string, data []byte) {
	t.Helper()
	actions := batch(t, s, repo, data).Actions
	if up := actions["upload"]; up.Header["chunk_size"] == "" {
		must(t, "PUT", up.Href, "", string(data))
	} else {
		body := putParts(t, up.Header, data)
		for range 2 { // a repeated completion is no error
			must(t, "POST", up.Href, "", body)
		}
	}
	must(t, "POST", actions["verify"].Href, "tok", fmt.Sprintf(`{"oid":%q,"size":%d}`, world.Sum(data), len(data)))
}

func commitBody(lines ...string) string {
	return `{"key":"header","value":{"summary":"add","description":"more"}}` + "\n" + strings.Join(lines, "\n")
}

func lfsLine(path string, data []byte) string {
	return fmt.Sprintf(`{"key":"lfsFile","value":{"path":%q,"algo":"sha256","oid":%q,"size":%d}}`, path, world.Sum(data), len(data))
}

func fileLine(path, content string) string {
	return fmt.Sprintf(`{"key":"file","value":{"path":%q,"content":%q,"encoding":"base64"}}`, path, base64.StdEncoding.EncodeToString([]byte(content)))
}

func deleteLine(path string) string {
	return fmt.Sprintf(`{"key":"deletedFile","value":{"path":%q}}`, path)
}
