package hubtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// outcome is what a client sees of one request.
type outcome struct {
	status int
	header http.Header
	body   []byte
	err    error // of the request, or of reading the body
}

// try sends a request that may go wrong.
func try(ctx context.Context, method, url, body string, header ...string) outcome {
	return tryCounted(ctx, new(atomic.Int64), method, url, body, header...)
}

// silences are the faults that never end, each with the bytes of the body that come before.
var silences = map[string]int64{"slow": 1, "stall": 1000, "stall-header": 0, "hub-stall": 0, "put-stall": 0}

// trySpoiled sends a request whose answer a fault spoils. If nothing more is to come, it hangs up after a while.
func trySpoiled(t *testing.T, s *Server, fault, method, url, body string, header ...string) outcome {
	t.Helper()
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	var got atomic.Int64
	if before, endless := silences[fault]; endless {
		go func() {
			for ctx.Err() == nil && (s.FaultsActed(fault) == 0 || got.Load() < before) {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond) // in which more would come
			hangUp()
		}()
	}
	return tryCounted(ctx, &got, method, url, body, header...)
}

// tryCounted is try that tells at any time how much of the body has come.
func tryCounted(ctx context.Context, got *atomic.Int64, method, url, body string, header ...string) outcome {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return outcome{err: err}
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	tr := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	client := &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return outcome{err: err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.TeeReader(resp.Body, counting{got}))
	return outcome{resp.StatusCode, resp.Header, data, err}
}

type counting struct{ n *atomic.Int64 }

func (c counting) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

func TestDownloadFaults(t *testing.T) {
	files := LlamaModel(5, ModelOptions{})
	data := files["model.safetensors"]
	s := Start(t)
	s.AddRepo("me/m", files)
	url := location(t, s, "me/m", "model.safetensors")
	right := func(o outcome) bool { return o.err == nil && o.status == 206 && bytes.Equal(o.body, data) }
	for name, seen := range map[string]func(o outcome) bool{
		"cdn-500":      func(o outcome) bool { return o.status == 500 && bytes.Contains(o.body, []byte("<Code>InternalError")) },
		"cdn-503":      func(o outcome) bool { return o.status == 503 },
		"reset":        func(o outcome) bool { return o.err != nil && o.status == 0 },
		"cut":          func(o outcome) bool { return o.err != nil && o.status == 206 && len(o.body) <= 1000 },
		"short":        func(o outcome) bool { return errors.Is(o.err, io.ErrUnexpectedEOF) && len(o.body) == 1000 },
		"chunked":      func(o outcome) bool { return o.err == nil && o.status == 200 && bytes.Equal(o.body, data[:1000]) },
		"corrupt":      func(o outcome) bool { return o.err == nil && differAt(o.body, data) == 500 },
		"ignore-range": func(o outcome) bool { return o.status == 200 && bytes.Equal(o.body, data) },
		"wrong-range":  func(o outcome) bool { return o.status == 206 && bytes.Equal(o.body, data[1:]) },
		"gzip":         func(o outcome) bool { return o.status == 200 && o.header.Get("Content-Encoding") == "gzip" },
		"400-range":    func(o outcome) bool { return o.status == 400 },
		"expired":      func(o outcome) bool { return o.status == 403 && bytes.Contains(o.body, []byte("expired")) },
		"slow":         func(o outcome) bool { return o.err != nil && len(o.body) > 0 && len(o.body) < 1000 },
		"stall":        func(o outcome) bool { return o.err != nil && len(o.body) == 1000 },
		"stall-header": func(o outcome) bool { return o.err != nil && o.status == 0 },
		"416":          func(o outcome) bool { return o.status == 416 },
	} {
		t.Run(name, func(t *testing.T) {
			s.Inject(Fault{Name: name})
			if o := trySpoiled(t, s, name, "GET", url, "", "Range", "bytes=0-"); !seen(o) {
				t.Errorf("got %d, %d bytes, %v", o.status, len(o.body), o.err)
			}
			if o := try(t.Context(), "GET", url, "", "Range", "bytes=0-"); !right(o) {
				t.Errorf("the next answer: %d, %d bytes, %v", o.status, len(o.body), o.err)
			}
			if s.FaultsActed(name) != 1 {
				t.Errorf("acted %d times", s.FaultsActed(name))
			}
		})
	}
	checkAllNamed(t, downloadFaults(), s)
}

// differAt returns the only index where a and b differ, or -1.
func differAt(a, b []byte) int {
	at := -1
	for i := range a {
		if len(a) != len(b) || a[i] != b[i] {
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}

// checkAllNamed wants every fault of a table to have been acted out.
func checkAllNamed(t *testing.T, table map[string]namedFault, s *Server) {
	t.Helper()
	for name := range table {
		if s.FaultsActed(name) == 0 {
			t.Errorf("fault %s is not tested", name)
		}
	}
}

func TestHubFaults(t *testing.T) {
	s := Start(t, WithPageSize(3))
	s.AddRepo("me/m", LlamaModel(5, ModelOptions{}))
	const file, tree, info = "/me/m/resolve/main/model.safetensors", "/api/models/me/m/tree/main", "/api/models/me/m"
	status := func(n int, code string) func(outcome) bool {
		return func(o outcome) bool { return o.status == n && o.header.Get("X-Error-Code") == code }
	}
	header := func(k, part string) func(outcome) bool {
		return func(o outcome) bool { return strings.Contains(o.header.Get(k), part) }
	}
	none := func(k string) func(outcome) bool {
		return func(o outcome) bool { return o.err == nil && len(o.header.Values(k)) == 0 }
	}
	for name, tc := range map[string]struct {
		path string
		seen func(outcome) bool
	}{
		"429-ratelimit":   {info, header("RateLimit", "r=0;t=2")},
		"429-retry-after": {info, header("Retry-After", "1")},
		"429-http-date":   {info, header("Retry-After", "GMT")},
		"429-bare":        {info, none("Retry-After")},
		"500":             {info, status(500, "")},
		"502":             {info, header("Content-Type", "text/html")},
		"503":             {info, status(503, "")},
		"504":             {info, status(504, "")},
		"hub-reset":       {info, func(o outcome) bool { return o.err != nil }},
		"hub-stall":       {info, func(o outcome) bool { return o.err != nil }},
		"warning":         {info, header("X-HF-Warning", "; ")},
		"bad-token":       {info, header("X-Error-Message", "Invalid credentials")},
		"etag-changed":    {file, header("X-Linked-Etag", "ffff")},
		"commit-changed":  {file, header("X-Repo-Commit", "0000000000000000000000000000000000000000")},
		"no-commit":       {file, none("X-Repo-Commit")},
		"size-changed":    {file, header("X-Linked-Size", "1")},
		"redirect-loop":   {file, header("Location", file)},
		"redirect-host":   {file, header("Location", s.CDNURL+file)},
		"redirect-port":   {file, header("Location", "http://127.0.0.1:")},
		"redirect-scheme": {file, header("Location", "https://localhost:")},
		"gated-401":       {file, status(401, codeGatedRepo)},
		"gated-403":       {file, status(403, codeGatedRepo)},
		"entry-404":       {file, status(404, codeEntryNotFound)},
		"disabled":        {info, header("X-Error-Message", "disabled")},
		"repo-401":        {info, status(401, codeRepoNotFound)},
		"repo-404":        {info, status(404, codeRepoNotFound)},
		"revision-404":    {info, status(404, codeRevisionNotFound)},
		"link-origin":     {tree, header("Link", s.CDNURL)},
		"tree-duplicate":  {tree, func(o outcome) bool { return bytes.Count(o.body, []byte(`".gitattributes"`)) == 2 }},
		"tree-empty":      {tree, func(o outcome) bool { return string(o.body) == "[]" && o.header.Get("Link") != "" }},
		"tree-bad-path":   {tree, func(o outcome) bool { return bytes.Contains(o.body, []byte(`"../../outside.txt"`)) }},
	} {
		s.ClearFaults()
		before := try(t.Context(), "GET", s.URL+tc.path, "")
		s.Inject(Fault{Name: name})
		if o := trySpoiled(t, s, name, "GET", s.URL+tc.path, ""); !tc.seen(o) {
			t.Errorf("%s: %d %v %v %.100s", name, o.status, o.err, o.header, o.body)
		}
		after := try(t.Context(), "GET", s.URL+tc.path, "")
		if before.status != after.status || s.FaultsActed(name) != 1 {
			t.Errorf("%s: %d before, %d after, acted %d times", name, before.status, after.status, s.FaultsActed(name))
		}
	}
}

func TestCopyFault(t *testing.T) {
	s := Start(t)
	s.AddRepo("me/m", nil)
	s.Inject(Fault{Name: "duplicate-500"})
	for _, status := range []int{500, 200} {
		q := `{"target":{"type":"model","name":"me/m"},"files":[]}`
		if o := try(t.Context(), "POST", s.URL+"/api/models/me/m/lfs-files/duplicate", q, "Authorization", "Bearer tok"); o.status != status {
			t.Errorf("got %d, want %d", o.status, status)
		}
	}
}

func TestUploadFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		step string // where it shows: batch, put, complete, verify
		seen func(o outcome) bool
	}{
		"batch-500":       {"batch", func(o outcome) bool { return o.status == 500 }},
		"batch-quota":     {"batch", func(o outcome) bool { return o.status == 403 && bytes.Contains(o.body, []byte("storage limit")) }},
		"lfs-error":       {"batch", func(o outcome) bool { return bytes.Contains(o.body, []byte(`"code":422`)) }},
		"lfs-429":         {"batch", func(o outcome) bool { return o.status == 200 && bytes.Contains(o.body, []byte(`"code":429`)) }},
		"lfs-503":         {"batch", func(o outcome) bool { return o.status == 200 && bytes.Contains(o.body, []byte(`"code":503`)) }},
		"lfs-quota":       {"batch", func(o outcome) bool { return bytes.Contains(o.body, []byte(`"code":403`)) }},
		"lfs-no-actions":  {"batch", func(o outcome) bool { return !bytes.Contains(o.body, []byte("actions")) }},
		"lfs-part-count":  {"batch", func(o outcome) bool { return !bytes.Contains(o.body, []byte(`"00003"`)) }},
		"lfs-chunk-size":  {"batch", func(o outcome) bool { return bytes.Contains(o.body, []byte(`"chunk_size":"many"`)) }},
		"lfs-chunk-zero":  {"batch", func(o outcome) bool { return bytes.Contains(o.body, []byte(`"chunk_size":"0"`)) }},
		"put-500":         {"put", func(o outcome) bool { return o.status == 500 }},
		"put-503":         {"put", func(o outcome) bool { return o.status == 503 }},
		"put-timeout":     {"put", func(o outcome) bool { return o.status == 400 && bytes.Contains(o.body, []byte("RequestTimeout")) }},
		"put-expired":     {"put", func(o outcome) bool { return o.status == 403 }},
		"put-token":       {"put", func(o outcome) bool { return o.status == 400 && bytes.Contains(o.body, []byte("ExpiredToken")) }},
		"put-no-upload":   {"put", func(o outcome) bool { return o.status == 404 && bytes.Contains(o.body, []byte("NoSuchUpload")) }},
		"put-reset":       {"put", func(o outcome) bool { return o.err != nil }},
		"put-reset-after": {"put", func(o outcome) bool { return o.err != nil }},
		"put-no-etag":     {"put", func(o outcome) bool { return o.status == 200 && o.header.Get("ETag") == "" }},
		"put-wrong-etag":  {"put", func(o outcome) bool { return strings.HasPrefix(o.header.Get("ETag"), `"000000`) }},
		"put-stall":       {"put", func(o outcome) bool { return o.err != nil }},
		"complete-400":    {"complete", func(o outcome) bool { return o.status == 400 }},
		"complete-500":    {"complete", func(o outcome) bool { return o.status == 500 }},
		"complete-after":  {"complete", func(o outcome) bool { return o.status == 500 }},
		"verify-404":      {"verify", func(o outcome) bool { return o.status == 404 }},
		"verify-500":      {"verify", func(o outcome) bool { return o.status == 500 }},
		"verify-mismatch": {"verify", func(o outcome) bool { return o.status == 422 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := Start(t, WithMultipart(1, 4000))
			s.AddRepo("me/m", nil)
			data := bytes.Repeat([]byte("0123456789"), 1000)
			up := batch(t, s, "me/m", data, `"multipart"`).Actions["upload"]
			q := fmt.Sprintf(`{"operation":"upload","transfers":["multipart"],"objects":[{"oid":%q,"size":%d}]}`, sha(data), len(data))
			urls := map[string][2]string{
				"batch":    {"POST", s.URL + "/me/m.git/info/lfs/objects/batch"},
				"put":      {"PUT", up.Header["00001"].(string)},
				"complete": {"POST", up.Href},
				"verify":   {"POST", s.URL + "/me/m.git/info/lfs/objects/verify"},
			}
			bodies := map[string]string{"batch": q, "put": string(data[:4000]), "complete": completeBody(t, up.Header, data), "verify": "{}"}
			s.Inject(Fault{Name: name})
			auth := []string{"Authorization", "Bearer tok"}
			if tc.step == "put" {
				auth = nil
			}
			o := trySpoiled(t, s, name, urls[tc.step][0], urls[tc.step][1], bodies[tc.step], auth...)
			if !tc.seen(o) || s.FaultsActed(name) != 1 {
				t.Errorf("%d %v %v %.300s", o.status, o.err, o.header, o.body)
			}
			if applied := name == "complete-after"; s.Holds("me/m", sha(data)) != applied {
				t.Errorf("applied is not %t", applied)
			}
		})
	}
}

// completeBody uploads all parts and returns the body of the completion.
func completeBody(t *testing.T, header map[string]any, data []byte) string {
	t.Helper()
	var parts []string
	for i := 0; i*4000 < len(data); i++ {
		part := data[i*4000 : min(len(data), (i+1)*4000)]
		resp, body := do(t, "PUT", header[fmt.Sprintf("%05d", i+1)].(string), "", string(part))
		want(t, resp, body, 200, "")
		parts = append(parts, fmt.Sprintf(`{"partNumber":%d,"etag":%q}`, i+1, resp.Header.Get("ETag")))
	}
	return fmt.Sprintf(`{"oid":%q,"parts":[%s]}`, sha(data), strings.Join(parts, ","))
}

func TestCommitFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		status  int // 0: no answer
		commits int // on the branch afterwards, with the repo's own two
	}{
		"commit-412": {412, 2}, "commit-409": {409, 2}, "commit-race": {412, 3}, "commit-500": {500, 2},
		"commit-500-after": {500, 3}, "commit-504-after": {504, 3}, "commit-reset-after": {0, 3},
		"commit-400-lfs": {400, 2}, "commit-quota": {403, 2}, "commit-429": {429, 2},
	} {
		s := Start(t)
		head := s.AddRepo("me/m", nil)
		s.Inject(Fault{Name: name})
		q := fmt.Sprintf(`{"key":"header","value":{"summary":"s","parentCommit":%q}}`+"\n%s", head, fileLine("a", "x"))
		o := try(t.Context(), "POST", s.URL+"/api/models/me/m/commit/main", q, "Authorization", "Bearer tok")
		if o.status != tc.status || (o.err != nil) != (tc.status == 0) || len(s.Commits("me/m", "main")) != tc.commits {
			t.Errorf("%s: %d %v, %d commits", name, o.status, o.err, len(s.Commits("me/m", "main")))
		}
	}
	s := Start(t)
	s.Inject(Fault{Name: "create-409"}, Fault{Name: "create-403", Nth: 2})
	for _, status := range []int{409, 403, 200} {
		o := try(t.Context(), "POST", s.URL+"/api/repos/create", `{"name":"m"}`, "Authorization", "Bearer tok")
		if o.status != status {
			t.Errorf("create: got %d, want %d", o.status, status)
		}
	}
}

func TestFaultRules(t *testing.T) {
	s := Start(t)
	s.AddRepo("me/m", map[string][]byte{"a.txt": []byte("a")})
	teapot := Status(418, nil, "")
	ask := func() int { return try(t.Context(), "GET", s.URL+"/me/m/resolve/main/a.txt", "").status }
	s.Inject(Fault{Name: "mine", Method: "GET", Path: "/me/*/a.txt", Nth: 2, Times: 2, Action: teapot})
	for i, status := range []int{200, 418, 418, 200} {
		if got := ask(); got != status {
			t.Errorf("request %d: got %d, want %d", i+1, got, status)
		}
	}
	if q := s.Requests()[1]; q.Fault != "mine" || q.Status != 418 || q.Seq != 2 || q.Method != "GET" {
		t.Errorf("log: %+v", q)
	}
	s.ClearFaults()
	s.Inject(Fault{Times: Always, Probability: 0.5, Seed: 1, Action: teapot})
	got := map[int]int{}
	for range 60 {
		got[ask()]++
	}
	if got[418] < 15 || got[200] < 15 {
		t.Errorf("half of them should fail: %v", got)
	}
	s.ClearFaults()
	if ask() != 200 || s.Count("GET", "*/a.txt") != 65 {
		t.Errorf("%d requests counted", s.Count("GET", "*/a.txt"))
	}
}

func TestParseFault(t *testing.T) {
	for spec, want := range map[string]Fault{
		"cut":        {Name: "cut"},
		"cut:3":      {Name: "cut", Times: 3},
		"cut:always": {Name: "cut", Times: Always},
	} {
		if got, err := ParseFault(spec); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %+v, %v", spec, got, err)
		}
	}
	for _, spec := range []string{"nope", "cut:0", "cut:-1", "cut:0.5", "cut:x", "cut:"} {
		if _, err := ParseFault(spec); err == nil {
			t.Errorf("%s: no error", spec)
		}
	}
	for _, name := range FaultNames() {
		if DescribeFault(name) == "" || faultTable[name].action == nil {
			t.Errorf("%s: incomplete", name)
		}
	}
}

func TestMatchPath(t *testing.T) {
	for _, tc := range []struct {
		pattern, path string
		want          bool
	}{
		{"", "/x", true}, {"/x", "/x", true}, {"/x", "/xy", false}, {"*", "/x", true}, {"/a/*/c", "/a/b/b/c", true},
		{"/a/*/c", "/a/c", false}, {"*/resolve/*", "/a/b/resolve/main/f", true}, {"/a*a", "/a", false}, {"*x*y", "/x/y/y", true},
	} {
		if got := pathPattern(tc.pattern).MatchString(tc.path); got != tc.want {
			t.Errorf("%q, %q: got %t", tc.pattern, tc.path, got)
		}
	}
}
