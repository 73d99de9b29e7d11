package hubtest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeClock is a clock that tests move.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *fakeClock { return &fakeClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// location asks for the signed URL of a file.
func location(t *testing.T, s *Server, repo, path string) string {
	t.Helper()
	resp, body := do(t, "HEAD", s.URL+"/"+repo+"/resolve/main/"+path, "", "")
	want(t, resp, body, http.StatusFound, "")
	return resp.Header.Get("Location")
}

func TestSignedURLs(t *testing.T) {
	for name, style := range map[string][]Option{"S3": nil, "CloudFront": {WithCloudFront()}} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			s := New(append(style, WithClock(clock.Now), WithURLLifetime(time.Hour, time.Minute))...)
			defer s.Close()
			s.AddRepo("me/m", map[string][]byte{"a b/w.safetensors": []byte("weights")})
			url := location(t, s, "me/m", "a%20b/w.safetensors")
			resp, body := do(t, "GET", url, "", "")
			want(t, resp, body, 200, "")
			if body != "weights" || resp.Header.Get("ETag") == `"`+sha([]byte(body))+`"` {
				t.Errorf("body %q, etag %s", body, resp.Header.Get("ETag"))
			}
			clock.Add(time.Hour)
			resp, body = do(t, "GET", url, "", "")
			if want(t, resp, body, 403, ""); !strings.Contains(body, "<Message>Request has expired</Message>") {
				t.Errorf("body %s", body)
			}
			if len(s.Violations()) != 0 {
				t.Errorf("violations: %v", s.Violations())
			}
			changed := strings.Replace(location(t, s, "me/m", "a%20b/w.safetensors"), "%3B", ";", 1)
			resp, body = do(t, "GET", changed, "", "")
			if want(t, resp, body, 403, ""); !strings.Contains(body, "SignatureDoesNotMatch") || len(s.Violations()) != 1 {
				t.Errorf("body %s, violations %v", body, s.Violations())
			}
			resp, body = do(t, "GET", strings.Split(url, "?")[0], "", "")
			want(t, resp, body, 403, "")
		})
	}
}

func TestUnrangedLimit(t *testing.T) {
	s := Start(t, WithUnrangedLimit(6))
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": []byte("weights")})
	url := location(t, s, "me/m", "w.safetensors")
	resp, body := do(t, "GET", url, "", "")
	want(t, resp, body, 400, "")
	resp, body = do(t, "GET", url, "", "", "Range", "bytes=0-")
	want(t, resp, body, 206, "")
}

// batch asks for the upload of one object and returns its part of the answer.
func batch(t *testing.T, s *Server, repo string, data []byte, transfers string) batchAnswer {
	t.Helper()
	q := fmt.Sprintf(`{"operation":"upload","transfers":[%s],"objects":[{"oid":%q,"size":%d}],"hash_algo":"sha_256"}`, transfers, sha(data), len(data))
	resp, body := do(t, "POST", s.URL+"/"+repo+".git/info/lfs/objects/batch", "tok", q)
	want(t, resp, body, 200, "")
	return decode[struct{ Objects []batchAnswer }](t, body).Objects[0]
}

type batchAnswer struct {
	Actions map[string]struct {
		Href   string
		Header map[string]any
	}
	Error *struct {
		Code    int
		Message string
	}
}

func TestWrongBytesShowAtVerify(t *testing.T) {
	s := Start(t)
	s.AddRepo("me/m", nil)
	data := []byte("right")
	a := batch(t, s, "me/m", data, `"basic"`)
	resp, body := do(t, "PUT", a.Actions["upload"].Href, "", "wrong")
	want(t, resp, body, 200, "") // the storage does not know better
	resp, body = do(t, "POST", a.Actions["verify"].Href, "tok", fmt.Sprintf(`{"oid":%q,"size":5}`, sha(data)))
	want(t, resp, body, 404, "")
	resp, body = do(t, "POST", s.URL+"/api/models/me/m/commit/main", "tok", commitBody(lfsLine("w", data)))
	want(t, resp, body, 400, "")
	resp, body = do(t, "PUT", a.Actions["upload"].Href, "", "right")
	want(t, resp, body, 200, "")
	resp, body = do(t, "POST", a.Actions["verify"].Href, "tok", fmt.Sprintf(`{"oid":%q,"size":6}`, sha(data)))
	want(t, resp, body, 422, "")
	resp, body = do(t, "POST", a.Actions["verify"].Href, "", fmt.Sprintf(`{"oid":%q,"size":5}`, sha(data)))
	want(t, resp, body, 401, "")
	if a := batch(t, s, "me/m", data, `"basic"`); a.Actions != nil {
		t.Error("a stored object must have no actions")
	}
}

func TestPutRefusals(t *testing.T) {
	clock := newClock()
	s := New(WithClock(clock.Now), WithURLLifetime(time.Hour, time.Minute))
	defer s.Close()
	s.AddRepo("me/m", nil)
	a := batch(t, s, "me/m", []byte("x"), `"basic","multipart"`)
	href := a.Actions["upload"].Href
	req, err := http.NewRequestWithContext(t.Context(), "PUT", href, struct{ *strings.Reader }{strings.NewReader("x")})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 501 {
		t.Errorf("chunked PUT: got %d", resp.StatusCode)
	}
	resp2, body := do(t, "PUT", href, "tok", "x")
	want(t, resp2, body, 400, "")
	resp2, body = do(t, "GET", href, "", "")
	want(t, resp2, body, 405, "")
	clock.Add(time.Minute)
	resp2, body = do(t, "PUT", href, "", "x")
	want(t, resp2, body, 403, "")
}

func TestBatchErrors(t *testing.T) {
	s := Start(t, WithUser("owner", User{Name: "me"}), WithUser("reader", User{Name: "me", ReadOnly: true}))
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": []byte("w")})
	url := s.URL + "/me/m.git/info/lfs/objects/batch"
	ask := func(token, op, algo, oid string, size int) (int, *batchAnswer) {
		q := fmt.Sprintf(`{"operation":%q,"hash_algo":%q,"objects":[{"oid":%q,"size":%d}]}`, op, algo, oid, size)
		resp, body := do(t, "POST", url, token, q)
		if resp.StatusCode != 200 {
			return resp.StatusCode, nil
		}
		return 200, &decode[struct{ Objects []batchAnswer }](t, body).Objects[0]
	}
	for _, tc := range []struct {
		token, op, algo string
		status          int
	}{{"", "upload", "", 401}, {"reader", "upload", "", 403}, {"owner", "download", "", 400}, {"owner", "upload", "md5", 409}} {
		if got, _ := ask(tc.token, tc.op, tc.algo, sha(nil), 1); got != tc.status {
			t.Errorf("%+v: got %d", tc, got)
		}
	}
	for oid, size := range map[string]int{"xyz": 1, sha([]byte("n")): -1, sha([]byte("w")): 2} {
		if _, o := ask("owner", "upload", "", oid, size); o == nil || o.Error == nil || o.Error.Code != 422 || o.Actions != nil {
			t.Errorf("%s, %d: %+v", oid, size, o)
		}
	}
}

func TestMultipartErrors(t *testing.T) {
	s := Start(t, WithMultipart(1, 4))
	s.AddRepo("me/m", nil)
	data := []byte("0123456789")
	a := batch(t, s, "me/m", data, `"basic","multipart"`)
	up := a.Actions["upload"]
	if up.Header["chunk_size"] != "4" || len(up.Header) != 4 {
		t.Fatalf("header: %v", up.Header)
	}
	etags := map[int]string{}
	for n, part := range map[int]string{1: "0123", 2: "4567", 3: "89"} {
		resp, body := do(t, "PUT", up.Header[fmt.Sprintf("%05d", n)].(string), "", part)
		want(t, resp, body, 200, "")
		etags[n] = resp.Header.Get("ETag")
	}
	part := func(n int, etag string) string { return fmt.Sprintf(`{"partNumber":%d,"etag":%q}`, n, etag) }
	one, two, three := part(1, etags[1]), part(2, etags[2]), part(3, etags[3])
	for name, parts := range map[string]string{
		"missing": one + "," + two,
		"order":   two + "," + one + "," + three,
		"etag":    one + "," + two + "," + part(3, strings.Trim(etags[3], `"`)),
	} {
		resp, body := do(t, "POST", up.Href, "", fmt.Sprintf(`{"oid":%q,"parts":[%s]}`, sha(data), parts))
		if resp.StatusCode != 400 {
			t.Errorf("%s: got %d %s", name, resp.StatusCode, body)
		}
	}
	resp, body := do(t, "PUT", up.Header["00001"].(string), "", "01234")
	want(t, resp, body, 400, "") // larger than chunk_size
	resp, body = do(t, "PUT", up.Header["00003"].(string), "", "8")
	want(t, resp, body, 400, "") // shorter than the rest of the file
	resp, body = do(t, "POST", up.Href, "", fmt.Sprintf(`{"oid":%q,"parts":[%s,%s,%s]}`, sha(data), one, two, three))
	want(t, resp, body, 200, "")
	if !s.Holds("me/m", sha(data)) {
		t.Error("the object is not in the store")
	}
}

// TestDroppedParts sends parts in every order, some twice: the hash must come
// out right without the bytes being kept.
func TestDroppedParts(t *testing.T) {
	for _, order := range [][]int{{1, 2, 3}, {3, 2, 1}, {2, 2, 3, 1, 1}} {
		parts, _ := (&objects{dropUploads: true}).assemble(3, 9)
		d := parts.(*dropParts)
		for _, n := range order {
			if err := d.put(n, []byte(strings.Repeat(fmt.Sprint(n), 3))); err != nil {
				t.Fatal(err)
			}
		}
		o, _ := d.object()
		if o.sha256 != sha([]byte("111222333")) || o.size != 9 || len(d.waiting) != 0 {
			t.Errorf("%v: %+v", order, o)
		}
	}
}

func TestForget(t *testing.T) {
	s := Start(t)
	data := []byte("weights")
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": data})
	s.Forget("me/m", sha(data))
	resp, body := do(t, "POST", s.URL+"/api/models/me/m/commit/main", "tok", commitBody(lfsLine("v.safetensors", data)))
	want(t, resp, body, 400, "")
	if a := batch(t, s, "me/m", data, `"basic"`); a.Actions == nil {
		t.Error("a forgotten object must be uploaded again")
	}
}
