package wire

import (
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

func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		name    string
		status  int
		headers []string
		body    string
		want    error
		hint    string
		token   bool
	}{
		{"missing, anonymous", 401, []string{"X-Error-Code: RepoNotFound"}, "", ErrNotFound, "set HF_TOKEN", false},
		{"bare 401, anonymous", 401, nil, "", ErrNotFound, "set HF_TOKEN", false},
		{"bad token", 401, []string{"X-Error-Message: Invalid credentials in Authorization header"}, "", ErrUnauthorized, "HF_TOKEN is wrong or expired", true},
		{"expired token", 401, nil, `{"error":"User Access Token \"ci\" is expired"}`, ErrUnauthorized, "HF_TOKEN has expired", true},
		{"wrong token", 401, []string{"X-Error-Message: Invalid credentials in Authorization header"}, "", ErrUnauthorized, "HF_TOKEN is wrong or expired", true},
		{"gated, anonymous", 401, []string{"X-Error-Code: GatedRepo"}, "", ErrGated, "https://hub.test/a/b in a browser, accept", false},
		{"gated, no access", 403, []string{"X-Error-Code: GatedRepo"}, "", ErrGated, "request access at https://hub.test/a/b", true},
		{"disabled", 403, []string{"X-Error-Message: Access to this resource is disabled."}, "", ErrDisabled, "disabled", true},
		{"no right", 403, nil, `{"error":"Forbidden"}`, ErrForbidden, "needs write access to a/b", true},
		{"quota", 403, nil, `{"error":"Private repository storage limit reached"}`, ErrQuota, "storage", true},
		{"storage patterns", 403, nil, `{"error":["Your storage patterns tripped our limits"]}`, ErrQuota, "storage", true},
		{"no repo", 404, []string{"X-Error-Code: RepoNotFound"}, "", ErrNotFound, "spelling", true},
		{"no revision", 404, []string{"X-Error-Code: RevisionNotFound"}, "", ErrRevisionNotFound, "revision", true},
		{"no file", 404, []string{"X-Error-Code: EntryNotFound"}, "", ErrEntryNotFound, "", true},
		{"conflict", 412, nil, `{"errors":[{"message":"moved"}]}`, ErrConflict, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := script(says(tt.status, tt.body, tt.headers...))
			c, _ := testTransport(t, w, func(o *Options) {
				if !tt.token {
					o.Token, o.TokenSource = "", ""
				}
			})
			_, err := c.Call(t.Context(), Get("read a/b", "a/b", "https://hub.test/api/models/a/b?x=1"), nil)
			if !errors.Is(err, tt.want) || w.Count() != 1 {
				t.Fatalf("%d requests, got %v, want %v", w.Count(), err, tt.want)
			}
			if !strings.Contains(Hint(err), tt.hint) || strings.Contains(err.Error()+Hint(err), "hf_secret") {
				t.Errorf("hint %q", Hint(err))
			}
			if strings.Contains(err.Error(), "x=1") {
				t.Errorf("query in %q", err)
			}
		})
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
