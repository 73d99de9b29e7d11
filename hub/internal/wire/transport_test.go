package wire

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRetryWaits(t *testing.T) {
	date := noon.Add(7 * time.Second).Format(http.TimeFormat)
	for _, tt := range []struct {
		name   string
		step   func(*http.Request) (*http.Response, error)
		waited time.Duration // with jitter one half
	}{
		{"RateLimit", says(429, "", `RateLimit: "api";r=0;t=2`), 3500 * time.Millisecond},
		{"Retry-After", says(429, "", "Retry-After: 1"), 2500 * time.Millisecond},
		{"HTTP date", says(429, "", "Retry-After: "+date), 8500 * time.Millisecond},
		{"bare 429", says(429, ""), time.Second},
		{"503 with Retry-After", says(503, "", "Retry-After: 4"), 5500 * time.Millisecond},
		{"RateLimit with requests left is not the reason", says(429, "", `RateLimit: "api";r=90;t=200`), time.Second},
		{"absurd wish is cut", says(429, "", "Retry-After: 99999999"), maxHeaderWait + 1500*time.Millisecond},
		{"500", says(500, ""), 500 * time.Millisecond},
		{"502", says(502, "<html>"), 500 * time.Millisecond},
		{"504", says(504, ""), 500 * time.Millisecond},
		{"408", says(408, ""), 500 * time.Millisecond},
		{"reset", breaks(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), 500 * time.Millisecond},
		{"cut JSON", says(200, `{"name":"m`), 500 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := script(tt.step, says(200, okUser))
			c, clock := testTransport(t, w)
			u, err := whoAmI(t.Context(), c)
			if err != nil || u != "me" {
				t.Fatalf("got %q, %v", u, err)
			}
			if w.Count() != 2 || clock.Waited() != tt.waited {
				t.Errorf("%d requests, waited %v; want 2, %v", w.Count(), clock.Waited(), tt.waited)
			}
			if s := c.Stats(); s.Requests != 2 || s.Retries != 1 || s.Waited != tt.waited {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestNoRetry(t *testing.T) {
	for _, status := range []int{400, 401, 402, 403, 404, 405, 409, 410, 412, 413, 416, 422, 501} {
		w := script(says(status, `{"error":"no"}`, "X-Request-Id: req-1"))
		c, clock := testTransport(t, w)
		_, err := whoAmI(t.Context(), c)
		var e *Error
		if !errors.As(err, &e) || e.Status != status || e.RequestID != "req-1" || e.Message != "no" {
			t.Errorf("%d: got %v", status, err)
		}
		if w.Count() != 1 || clock.Waited() != 0 {
			t.Errorf("%d: %d requests, waited %v", status, w.Count(), clock.Waited())
		}
	}
	for name, err := range map[string]error{
		"unknown authority": x509.UnknownAuthorityError{},
		"other host":        fmt.Errorf("tls: %w", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}),
	} {
		w := script(breaks(err))
		c, _ := testTransport(t, w)
		if _, err := whoAmI(t.Context(), c); err == nil || w.Count() != 1 {
			t.Errorf("%s: %d requests, %v", name, w.Count(), err)
		}
	}
}

func TestRetryGivesUp(t *testing.T) {
	w := script(says(503, "<html><body>secret page</body></html>", "Content-Type: text/html", "X-Amz-Cf-Id: cf-9"))
	c, clock := testTransport(t, w)
	_, err := whoAmI(t.Context(), c)
	if w.Count() != 16 {
		t.Errorf("%d requests", w.Count())
	}
	if want := (1 + 2 + 4 + 8 + 16 + 32 + 9*60) * time.Second / 2; clock.Waited() != want || want < outagePatience {
		t.Errorf("waited %v, want %v", clock.Waited(), want)
	}
	for _, part := range []string{"503", "16 attempts", "request id cf-9", "read the token's owner"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "html") || Hint(err) == "" {
		t.Errorf("got %q, hint %q", err, Hint(err))
	}
}

func TestRetryTotalIsCapped(t *testing.T) {
	w := script(says(429, "")) // a quota of unknown length is waited for beyond the usual tries
	c, clock := testTransport(t, w)
	_, err := whoAmI(t.Context(), c)
	if !errors.Is(err, ErrRateLimited) || w.Count() != 18 || clock.Waited() > maxWait || clock.Waited() < maxWait-longestQuota {
		t.Errorf("%d requests, waited %v, %v", w.Count(), clock.Waited(), err)
	}
}

func TestCancelEndsTheWait(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("stop it")
	w := script(func(r *http.Request) (*http.Response, error) {
		cancel(cause)
		return reply(r, 503, ""), nil
	})
	c, _ := testTransport(t, w)
	if _, err := whoAmI(ctx, c); !errors.Is(err, cause) || w.Count() != 1 {
		t.Errorf("%d requests, %v", w.Count(), err)
	}
}

func TestTokenStaysHome(t *testing.T) {
	for _, tt := range []struct {
		name, location string
		token          bool
	}{
		{"same origin", "https://hub.test/api/y", true},
		{"relative", "/api/y", true},
		{"default port", "https://hub.test:443/api/y", true},
		{"other port", "https://hub.test:8443/api/y", false},
		{"subdomain", "https://cdn.hub.test/api/y", false},
		{"other host", "https://evil.test/api/y", false},
		{"no scheme", "//evil.test/api/y", false},
		{"public hub", "https://huggingface.co/api/y", true}, // where mirrors redirect to
		{"public hub by its short name", "https://hf.co/api/y", true},
		{"public hub, other port", "https://huggingface.co:8443/api/y", false},
		{"subdomain of the public hub", "https://cdn-lfs.huggingface.co/api/y", false},
		{"looks like the public hub", "https://huggingface.co.evil.test/api/y", false},
		{"public hub as the user", "https://huggingface.co@evil.test/api/y", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := script(says(302, "", "Location: "+tt.location), says(200, "{}"))
			c, _ := testTransport(t, w)
			r := Get("x", "", "https://hub.test/api/x")
			r.Follow = FollowAll
			if _, err := c.Call(t.Context(), r, nil); err != nil {
				t.Fatal(err)
			}
			if w.Count() != 2 || w.Seen[0].Header.Get("Authorization") != "Bearer hf_secret" {
				t.Fatal("the first hop must carry the token")
			}
			if got := w.Seen[1].Header.Get("Authorization") != ""; got != tt.token {
				t.Errorf("token sent: %v", got)
			}
		})
	}
}

// TestAuthorizationNeverLeavesItsOrigin: headers that came with a link, or are for the CI system, are as secret as the token.
func TestAuthorizationNeverLeavesItsOrigin(t *testing.T) {
	for location, kept := range map[string]bool{
		"https://store.test/y": true, "/y": true, "https://store.test:8443/y": false, "https://evil.test/y": false, "https://hub.test/y": false,
	} {
		w := script(says(307, "", "Location: "+location), says(307, "", "Location: /z"), says(200, ""))
		c, _ := testTransport(t, w)
		r := &Request{Op: "x", Method: http.MethodPut, URL: "https://store.test/x", Follow: FollowSame, Bulk: true,
			Header: http.Header{"Authorization": {"Basic secret"}, "X-Kind": {"kept"}}}
		if _, err := c.Call(t.Context(), r, nil); err != nil || w.Count() != 3 {
			t.Fatalf("%d requests, %v", w.Count(), err)
		}
		for i, seen := range w.Seen {
			if got := seen.Header.Get("Authorization") != ""; got != (kept || i == 0) || seen.Header.Get("X-Kind") != "kept" {
				t.Errorf("%s, hop %d: authorization sent: %v", location, i, got)
			}
		}
	}
}

func TestBodyIsReopened(t *testing.T) {
	var bodies []string
	n := 0
	w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		if r.ContentLength != int64(len(b)) || r.TransferEncoding != nil {
			t.Errorf("length %d of %d", r.ContentLength, len(b))
		}
		n++
		switch n {
		case 1:
			return nil, syscall.ECONNRESET
		case 2:
			return reply(r, 307, "", "Location: /api/renamed"), nil
		case 3:
			return reply(r, 500, ""), nil
		}
		return reply(r, 200, "{}"), nil
	}}
	c, _ := testTransport(t, w)
	if _, err := c.Call(t.Context(), Send("x", "", "POST", "https://hub.test/api/x", "body"), nil); err != nil {
		t.Fatal(err)
	}
	for _, b := range bodies {
		if b != `"body"` {
			t.Errorf("sent %q", bodies)
		}
	}
}

func TestLocalBodyIsNotTheNetworksFault(t *testing.T) {
	w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		_, err := io.ReadAll(r.Body)
		return nil, err
	}}
	c, _ := testTransport(t, w)
	r := Send("upload x", "", "PUT", "https://hub.test/x", 1)
	r.Body, r.Size = func() io.Reader { return strings.NewReader("short") }, 10
	if _, err := c.Call(t.Context(), r, nil); !errors.Is(err, errLocalBody) || w.Count() != 1 {
		t.Errorf("%d requests, %v", w.Count(), err)
	}
}

func TestHeaders(t *testing.T) {
	w := script(says(200, okUser))
	c, _ := testTransport(t, w, func(o *Options) { o.UserAgent = "df11-convert/1.0" })
	if _, err := whoAmI(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if h := w.Seen[0].Header; h.Get("User-Agent") != "df11-convert/1.0" {
		t.Errorf("headers %v", h)
	}
}

// TestRefusals: what each answer to a call is called, which sentinel it has, and what people are told to do.
func TestRefusals(t *testing.T) {
	const repo, api = "a/b", "https://hub.test/api/models/a/b"
	info := Get("read model info of a/b", repo, api+"/revision/main?x=1")
	info.Finds = true
	tree := Get("list files of a/b", repo, api+"/tree/main?x=1")
	commit := &Request{Op: "commit to a/b", Repo: repo, Method: "POST", URL: api + "/commit/main?x=1", Token: true, Follow: FollowSame}
	create := Send("create repo a/b", repo, "POST", "https://hub.test/api/repos/create?x=1", 1)
	create.Needs = `write access to "a"`
	code := func(code string) []string { return []string{"X-Error-Code: " + code} }
	said := func(words string) []string { return []string{"X-Error-Message: " + words} }
	const noRepo, lacks = "a/b: no such repo, or it is private", ": this Hub may lack the route: "
	for _, tt := range []struct {
		call    *Request
		token   bool
		status  int
		headers []string
		body    string
		want    error
		words   string // Brief's, or the beginning of Error's
		hint    string
	}{
		{info, false, 401, code("RepoNotFound"), "", ErrNotFound, noRepo, "if the repo is private, set HF_TOKEN"},
		{info, false, 401, nil, "", ErrNotFound, noRepo, "if the repo is private, set HF_TOKEN"},
		{info, true, 404, nil, "", ErrNotFound, noRepo, `spelling of "a/b"; if the repo is private, the owner of the token from HF_TOKEN`},
		{info, true, 404, code("RepoNotFound"), "", ErrNotFound, noRepo, "spelling"},
		{tree, true, 404, code("RepoNotFound"), "", ErrNotFound, noRepo, "spelling"},
		{tree, false, 401, nil, "", ErrUnauthorized, "no token is set", "set HF_TOKEN to an access token, from https://hub.test/settings/tokens"},
		{tree, true, 404, nil, "<html>", ErrNoRoute, "list files of a/b" + lacks + "404 Not Found (GET " + api + "/tree/main)", "check HF_ENDPOINT"},
		{commit, true, 404, nil, `{"detail":"Not Found"}`, ErrNoRoute, "commit to a/b" + lacks + "404 Not Found (POST ", "check HF_ENDPOINT"},
		{create, true, 405, nil, "", ErrNoRoute, "create repo a/b" + lacks + "405 Method Not Allowed (POST ", "if it is a mirror that only reads, set DF11_PUSH_ENDPOINT"},
		{commit, true, 501, nil, `{"detail":{"error":"NotImplemented","message":"no pull requests"}}`, ErrNoRoute, "commit to a/b" + lacks + "501 Not Implemented: NotImplemented; no pull requests (", "cannot do this"},
		{tree, true, 404, code("RevisionNotFound"), "", ErrRevisionNotFound, "a/b: no such revision", "revision after @"},
		{tree, true, 404, code("EntryNotFound"), "", ErrEntryNotFound, "list files of a/b: file not found in the repo: 404 Not Found (", ""},
		{info, true, 401, said("Invalid credentials in Authorization header"), "", ErrUnauthorized, "a/b: the Hub refuses the token", "HF_TOKEN is wrong or expired"},
		{info, true, 401, nil, `{"error":"User Access Token \"ci\" is expired"}`, ErrUnauthorized, "a/b: the Hub refuses the token", "HF_TOKEN has expired"},
		{info, false, 401, code("GatedRepo"), "", ErrGated, "a/b: this repo is gated", "https://hub.test/a/b in a browser, accept the terms, then set HF_TOKEN"},
		{info, true, 403, code("GatedRepo"), "", ErrGated, "a/b: this repo is gated", "request access at https://hub.test/a/b"},
		{info, true, 403, said("Access to this resource is disabled."), "", ErrDisabled, "read model info of a/b: repo is disabled: 403 Forbidden", "operators have disabled"},
		{tree, true, 403, nil, "", ErrForbidden, "may not list files of a/b: the token from HF_TOKEN has no read access to a/b", "give the token from HF_TOKEN read access to a/b at https://hub.test/settings"},
		{commit, true, 403, nil, `{"error":"read only"}`, ErrForbidden, "may not commit to a/b: the token from HF_TOKEN has no write access to a/b: read only", "write access to a/b at"},
		{create, true, 403, nil, "", ErrForbidden, `may not create repo a/b: the token from HF_TOKEN has no write access to "a"`, `write access to "a"`},
		{create, false, 403, nil, "", ErrForbidden, "create repo a/b: not allowed: 403 Forbidden (POST", "set HF_TOKEN to an access token that has this right"},
		{commit, true, 403, nil, `{"error":"Private repository storage limit reached"}`, ErrQuota, "commit to a/b: storage quota reached: 403", "free or buy storage"},
		{commit, true, 403, nil, `{"error":["Your storage patterns tripped our limits"]}`, ErrQuota, "commit to a/b: storage quota reached: 403", "storage"},
		{commit, true, 413, nil, `{"detail":{"error":"Storage quota exceeded"}}`, ErrQuota, "commit to a/b: storage quota reached: 413 Request Entity Too Large: Storage quota exceeded", "storage"},
		{commit, true, 413, nil, "", ErrTooLarge, "commit to a/b: file is larger than allowed here: 413", ""},
		{commit, true, 412, nil, `{"errors":[{"message":"moved"}]}`, ErrConflict, "commit to a/b: branch moved: 412 Precondition Failed: moved (", "others commit to a/b"},
		{commit, true, 400, nil, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, nil, "commit to a/b: 400 Bad Request: field required (", ""},
		{info, true, 500, nil, `{"detail":"branch id must consist of letters"}`, ErrInsists, "read model info of a/b: the Hub gives the same answer each time: 500 Internal Server Error: branch id must consist of letters (GET " + api + "/revision/main, 5 attempts)", "in its own words"},
	} {
		t.Run(fmt.Sprint(tt.call.Op, tt.status, tt.headers, tt.body), func(t *testing.T) {
			w := script(says(tt.status, tt.body, tt.headers...))
			c, clock := testTransport(t, w, func(o *Options) {
				if !tt.token {
					o.Token, o.TokenSource = "", ""
				}
			})
			_, err := c.Call(t.Context(), tt.call, nil)
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(e.Err, tt.want) || (w.Count() == 1) != (clock.Waited() == 0) || clock.Waited() > time.Minute {
				t.Fatalf("%d requests, waited %v, got %v, want %v", w.Count(), clock.Waited(), err, tt.want)
			}
			if words := cmp.Or(e.Brief(), e.Error()); !strings.HasPrefix(words, tt.words) || tt.hint == "" != (Hint(e) == "") || !strings.Contains(Hint(e), tt.hint) {
				t.Errorf("%s\nhint: %s", words, Hint(e))
			}
			if text := err.Error() + Hint(err); strings.Contains(text, "x=1") || strings.Contains(text, "hf_secret") {
				t.Errorf("it shows too much: %s", text)
			}
		})
	}
}

// TestOutageAfterWorkIsWaitedFor: once file bytes have moved, the same words again and again may well be an outage.
func TestOutageAfterWorkIsWaitedFor(t *testing.T) {
	w := script(says(200, "bytes"), says(500, `{"error":"Internal Error"}`))
	c, clock := testTransport(t, w)
	resp, err := c.Exchange(t.Context(), &Request{Method: "GET", URL: "https://hub.test/x", Bulk: true})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if _, err := whoAmI(t.Context(), c); errors.Is(err, ErrInsists) || clock.Waited() < outagePatience {
		t.Errorf("%v after %v", err, clock.Waited())
	}
}

func TestStorageErrorsAreRead(t *testing.T) {
	w := script(says(403, "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"))
	c, _ := testTransport(t, w)
	_, err := c.Call(t.Context(), Get("x", "", "https://cdn.test/x?sig=hidden"), nil)
	var e *Error
	if !errors.As(err, &e) || e.Code != "AccessDenied" || e.Message != "Request has expired" || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
	if len(w.Seen[0].Header.Values("Authorization")) != 0 {
		t.Error("token sent to the storage")
	}
}
