package hub

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// TestRepeats checks that temporary failures are repeated, with the right waits, and that lasting
// ones reach the user with words and a hint.
func TestRepeats(t *testing.T) {
	type row struct {
		name     string
		step     func(*http.Request) (*http.Response, error)
		requests int           // 2: the second succeeds
		waited   time.Duration // with jitter one half
		want     error         // of lasting failures; also parts of the error and of the hint
		words    string
		hint     string
	}
	dial := func(op string, cause error) error { return &net.OpError{Op: op, Net: "tcp", Err: cause} }
	socket := func(e syscall.Errno) error { return dial("dial", os.NewSyscallError("socket", e)) }
	file := func(e syscall.Errno) error { return &os.PathError{Op: "write", Path: "x", Err: e} }
	const half = 500 * time.Millisecond
	const forLong = (1 + 2 + 4 + 8 + 16 + 32 + 9*60) * half
	rows := []row{
		{"RateLimit", says(429, "", `RateLimit: "api";r=0;t=2`), 2, 7 * half, nil, "", ""},
		{"Retry-After", says(429, "", "Retry-After: 1"), 2, 5 * half, nil, "", ""},
		{"Retry-After with a date", says(429, "", "Date: Sat, 28 Nov 2026 07:00:00 GMT", "Retry-After: Sat, 28 Nov 2026 07:00:40 GMT"), 2, 83 * half, nil, "", ""},
		{"Retry-After with a date that is over", says(503, "", "Date: Sat, 28 Nov 2026 07:00:00 GMT", "Retry-After: Sat, 28 Nov 2026 06:59:59 GMT"), 2, 3 * half, nil, "", ""},
		{"bare 429", says(429, ""), 2, 2 * half, nil, "", ""},
		{"503 with Retry-After", says(503, "", "Retry-After: 4"), 2, 11 * half, nil, "", ""},
		{"RateLimit with requests left is not the reason", says(429, "", `RateLimit: "api";r=90;t=200`), 2, 2 * half, nil, "", ""},
		{"absurd wish is cut", says(429, "", "Retry-After: 99999999"), 2, maxHeaderWait + 3*half, nil, "", ""},
		{"500", says(500, ""), 2, half, nil, "", ""},
		{"502", says(502, "<html>"), 2, half, nil, "", ""},
		{"504", says(504, ""), 2, half, nil, "", ""},
		{"408", says(408, ""), 2, half, nil, "", ""},
		{"reset", breaks(dial("read", syscall.ECONNRESET)), 2, half, nil, "", ""},
		{"refused", breaks(dial("dial", syscall.ECONNREFUSED)), 2, half, nil, "", ""},
		{"no way there", breaks(dial("dial", syscall.ENETUNREACH)), 2, half, nil, "", ""},
		{"too late", breaks(dial("read", syscall.ETIMEDOUT)), 2, half, nil, "", ""},
		{"broken pipe", breaks(dial("write", syscall.EPIPE)), 2, half, nil, "", ""},
		{"cut JSON", says(200, `{"name":"m`), 2, half, nil, "", ""},

		{"503 for ever", says(503, "<html><body>secret page</body></html>", "Content-Type: text/html", "X-Request-Id: cf-9"), 16, forLong, nil,
			"read the token's owner: 503 Service Unavailable (GET https://hub.test/api/whoami-v2, 16 attempts, request id cf-9)", "run the same command again"},
		{"a quota of unknown length for ever", says(429, ""), 18, (1<<10 - 1 + 7*600) * time.Second, ErrRateLimited, "18 attempts", hint.Again.String()},

		// Without a network, the first request of a run says so within seconds.
		{"no look-up for ever", breaks(&net.DNSError{Err: "no such host", Name: "hub.test"}), 4, 7 * half, errNoConnection,
			"no connection to hub.test: lookup hub.test: no such host", "check your network"},
		{"refused for ever", breaks(dial("dial", syscall.ECONNREFUSED)), 4, 7 * half, syscall.ECONNREFUSED,
			"no connection to hub.test: dial tcp: connection refused", "check your network"},
		{"proxy refused for ever", breaks(dial("proxyconnect", syscall.ECONNREFUSED)), 4, 7 * half, errNoConnection,
			"no connection to hub.test: ", "HTTPS_PROXY"},

		// This machine's own refusals are reported at once, and not blamed on the network.
		{"EMFILE", breaks(socket(syscall.EMFILE)), 1, 0, syscall.EMFILE, "", ""},
		{"EACCES", breaks(socket(syscall.EACCES)), 1, 0, syscall.EACCES, "", ""},
		{"ENOSPC", breaks(file(syscall.ENOSPC)), 1, 0, syscall.ENOSPC, "", ""},

		{"unknown authority", breaks(x509.UnknownAuthorityError{}), 1, 0, nil, "", "SSL_CERT_FILE"},
		{"no TLS", breaks(errors.New("tls: first record does not look like a TLS handshake")), 1, 0, nil, "", "http:// and https://"},
		{"TLS", breaks(errors.New(`malformed HTTP response "\x15\x03"`)), 1, 0, nil, "", "http:// and https://"},
		{"no roots", breaks(x509.SystemRootsError{Err: file(syscall.ENOENT)}), 1, 0, nil, "", ""},

		// Only these are temporary. All others are reported at once.
		{"look-up", breaks(&net.DNSError{Err: "server misbehaving"}), 2, half, nil, "", ""},
		{"late", breaks(dial("read", os.ErrDeadlineExceeded)), 2, half, nil, "", ""},
		{"closed", breaks(net.ErrClosed), 2, half, nil, "", ""},
		{"closed while idle", breaks(errors.New("http: server closed idle connection")), 2, half, nil, "", ""},
		{"a wrong byte", breaks(dial("remote error", errors.New("tls: bad record MAC"))), 2, half, nil, "", ""},
		{"something new", breaks(errors.New("something new")), 1, 0, nil, "", ""},
		{"handshake", breaks(dial("remote error", errors.New("tls: handshake failure"))), 1, 0, nil, "", ""},
		{"web page", says(200, "<html>", "Content-Type: text/html"), 2, half, nil, "", ""},
		{"web pages for ever", says(200, "<html>", "Content-Type: text/html"), 2, half, ErrNotHub, "", "login page"},
		{"nothing", says(200, ""), 2, half, nil, "", ""},
		{"nothing for ever", says(200, " \n"), 16, outagePatience + 3*half, ErrNotHub, "it's empty", "check HF_ENDPOINT"},
		{"null", says(200, "null"), 1, 0, ErrNotHub, "it's null", "check HF_ENDPOINT"},
		{"a proxy's login", says(407, ""), 1, 0, errProxy, "the proxy wants a login", "HTTPS_PROXY"},
		{"legal reasons", says(451, ""), 1, 0, errLegal, "legal reasons", "in a browser"},
		{"certificate of another host", breaks(fmt.Errorf("tls: %w", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"})), 1, 0, nil, "", "check HF_ENDPOINT"},
	}
	for _, status := range []int{400, 401, 402, 403, 404, 405, 409, 410, 412, 413, 416, 422, 501} {
		words := fmt.Sprintf("%d %s: no (GET https://hub.test/api/whoami-v2, request id req-1)", status, http.StatusText(status))
		rows = append(rows, row{fmt.Sprint(status), says(status, `{"error":"no"}`, "X-Request-Id: req-1"), 1, 0, nil, words, ""})
	}
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			w := script(tt.step)
			if tt.requests == 2 && tt.want == nil {
				w = script(tt.step, says(200, okUser))
			}
			c, clock := testTransport(t, w)
			u, err := whoAmI(t.Context(), c)
			if (err == nil) != (tt.requests == 2 && tt.want == nil) || (err == nil) != (u == "me") || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("got %q, %v", u, err)
			}
			if w.Count() != tt.requests || clock.Waited() != tt.waited {
				t.Errorf("%d requests, waited %v; want %d, %v", w.Count(), clock.Waited(), tt.requests, tt.waited)
			}
			if err == nil {
				return
			}
			if !strings.Contains(err.Error(), tt.words) || !strings.Contains(hintOf(err), tt.hint) || tt.requests == 1 && hintOf(err) == hint.Again.String() {
				t.Errorf("%v\nhint: %s", err, hintOf(err))
			}
			if e, ok := errors.AsType[*Error](err); !ok || errors.Is(err, errNoConnection) && !strings.HasPrefix(e.Brief(), "no connection to hub.test: ") {
				t.Errorf("in brief: %s", e.Brief())
			}
		})
	}
}

// TestASilentNetworkIsNeverWaitedForAtTheStart checks that a firewall that drops packets costs one
// short dial, not thirty seconds per try.
func TestASilentNetworkIsNeverWaitedForAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := script(func(r *http.Request) (*http.Response, error) {
			time.Sleep(firstContact) // the dialer's limit, see newRoundTripper
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
		})
		c, _ := testTransport(t, w, realTime)
		if _, err := whoAmI(t.Context(), c); w.Count() != 1 || !errors.Is(err, errNoConnection) {
			t.Errorf("%d requests, %v", w.Count(), err)
		}
	})
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
		{"default port", "https://HUB.test:443/api/y", true},
		{"other port", "https://hub.test:8443/api/y", false},
		{"subdomain", "https://cdn.hub.test/api/y", false},
		{"other host", "https://evil.test/api/y", false},
		{"no scheme", "//evil.test/api/y", false},
		{"public hub", "https://huggingface.co/api/y", true}, // mirrors redirect there
		{"public hub, other port", "https://huggingface.co:8443/api/y", false},
		{"subdomain of the public hub", "https://cdn-lfs.huggingface.co/api/y", false},
		{"looks like the public hub", "https://huggingface.co.evil.test/api/y", false},
		{"public hub as the user", "https://huggingface.co@evil.test/api/y", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := script(says(302, "", "Location: "+tt.location), says(200, "{}"))
			c, _ := testTransport(t, w, func(o *Options) { o.UserAgent = "df11-convert/1.0" })
			r := getRequest("x", "", "https://hub.test/api/x")
			r.follow = followAll
			if _, err := c.call(t.Context(), r, nil); err != nil {
				t.Fatal(err)
			}
			if w.Count() != 2 || w.Seen[0].Header.Get("Authorization") != "Bearer hf_secret" {
				t.Fatal("the first hop must carry the token")
			}
			if got := w.Seen[1].Header.Get("Authorization") != ""; got != tt.token || w.Seen[1].Header.Get("User-Agent") != "df11-convert/1.0" {
				t.Errorf("token sent: %v", got)
			}
		})
	}
}

// TestLanes checks which clients wait for each other's limits at a hub: those with the same token,
// those of the same publisher, and those without either. At a storage, all do.
func TestLanes(t *testing.T) {
	clients := map[string]func(*Options){
		"none":            func(o *Options) { o.Token, o.TokenSource = "", "" },
		"a token":         func(o *Options) { o.Token = "hf_a" },
		"another token":   func(o *Options) { o.Token = "hf_b" },
		"a publisher":     func(o *Options) { o.Token, o.Publisher = "", &Publisher{Resource: "a/b"} },
		"another of them": func(o *Options) { o.Token, o.Publisher = "", &Publisher{Resource: "a/c"} },
	}
	at := func(host string, change func(*Options)) lane {
		c, _ := testTransport(t, script(says(500, "")), change)
		return c.laneOf(&request{lane: "commit"}, &url.URL{Scheme: "https", Host: host})
	}
	for one, a := range clients {
		for other, b := range clients {
			if same := at("hub.test", a) == at("hub.test", b); same != (one == other) {
				t.Errorf("%s and %s: %v", one, other, same)
			}
			if at("cdn.test", a) != at("cdn.test", b) {
				t.Errorf("%s and %s are apart at the storage", one, other)
			}
		}
	}
}

// TestABodyNeverLeavesItsOrigin checks requests with headers that came with a link. They're as
// secret as the token.
func TestABodyNeverLeavesItsOrigin(t *testing.T) {
	for location, stays := range map[string]bool{
		"https://store.test/y": true, "/y": true, "https://store.test:8443/y": false, "https://evil.test/y": false, "https://hub.test/y": false,
	} {
		w := script(says(307, "", "Location: "+location), says(200, ""))
		c, _ := testTransport(t, w)
		r := &request{op: "x", method: http.MethodPut, url: "https://store.test/x", follow: followSame, bulk: true,
			header: http.Header{"Authorization": {"Basic secret"}}}
		_, err := c.call(t.Context(), r, nil)
		if (err == nil) != stays || !stays && !errors.Is(err, ErrNotHub) || (w.Count() == 2) != stays {
			t.Errorf("%s: %d requests, %v", location, w.Count(), err)
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
	if _, err := c.call(t.Context(), sendRequest("x", "", "POST", "https://hub.test/api/x", "body"), nil); err != nil {
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
	r := sendRequest("upload x", "", "PUT", "https://hub.test/x", 1)
	r.body, r.size = func() io.Reader { return strings.NewReader("short") }, 10
	if _, err := c.call(t.Context(), r, nil); !errors.Is(err, errLocalBody) || w.Count() != 1 {
		t.Errorf("%d requests, %v", w.Count(), err)
	}
}

// TestRefusals checks the words, the sentinel, and the hint of each refusal.
func TestRefusals(t *testing.T) {
	const repo, api = "a/b", "https://hub.test/api/models/a/b"
	info := getRequest("read model info of a/b", repo, api+"/revision/main?x=1")
	info.finds = true
	tree := getRequest("list files of a/b", repo, api+"/tree/main?x=1")
	commit := &request{op: "commit to a/b", repo: repo, method: "POST", url: api + "/commit/main?x=1", token: true, follow: followSame}
	create := sendRequest("create repo a/b", repo, "POST", "https://hub.test/api/repos/create?x=1", 1)
	code := func(code string) []string { return []string{"X-Error-Code: " + code} }
	said := func(words string) []string { return []string{"X-Error-Message: " + words} }
	const noRepo, lacks = "a/b: no such repo, or it is private", ": this Hub may lack the route: "
	for _, tt := range []struct {
		call    *request
		token   bool
		status  int
		headers []string
		body    string
		want    error
		words   string // Brief's, or the start of Error's
		hint    string
	}{
		{info, false, 401, code("RepoNotFound"), "", ErrNotFound, noRepo, "if the repo is private, log in with hf auth login, or set HF_TOKEN"},
		{info, false, 401, nil, "", ErrNotFound, noRepo, "if the repo is private, log in with hf auth login, or set HF_TOKEN"},
		{info, true, 404, nil, "", ErrNotFound, noRepo, `spelling of "a/b"; if the repo is private, the owner of the token from HF_TOKEN`},
		{info, true, 404, code("RepoNotFound"), "", ErrNotFound, noRepo, "spelling"},
		{tree, true, 404, code("RepoNotFound"), "", ErrNotFound, noRepo, "spelling"},
		{tree, false, 401, nil, "", ErrUnauthorized, "no token is set", "set HF_TOKEN to an access token, from https://hub.test/settings/tokens"},
		{tree, true, 404, nil, "<html>", errNoRoute, "list files of a/b" + lacks + "404 Not Found (GET " + api + "/tree/main)", "check HF_ENDPOINT"},
		{commit, true, 404, nil, "", errNoRoute, "commit to a/b" + lacks + "404 Not Found (POST ", "check HF_ENDPOINT"},
		{create, true, 405, nil, "", errNoRoute, "create repo a/b" + lacks + "405 Method Not Allowed (POST ", "if it's a read-only mirror, set DF11_PUSH_ENDPOINT"},
		{commit, true, 501, nil, `{"detail":{"error":"NotImplemented","message":"no pull requests"}}`, errNoRoute, "commit to a/b" + lacks + "501 Not Implemented: NotImplemented; no pull requests (", "can't do this"},
		{tree, true, 404, code("RevisionNotFound"), "", ErrRevisionNotFound, "a/b: no such revision", "was just created"},
		{tree, true, 404, code("EntryNotFound"), "", ErrEntryNotFound, "list files of a/b: file not found in the repo: 404 Not Found (", ""},
		{info, true, 401, said("Invalid credentials in Authorization header"), "", ErrUnauthorized, "a/b: the Hub refuses the token", "HF_TOKEN is wrong or expired"},
		{getRequest("read the token's owner", "", api+"/whoami"), true, 401, nil, "", ErrUnauthorized, "the Hub refuses the token from HF_TOKEN", "HF_TOKEN is wrong or expired"},
		{info, true, 401, nil, `{"error":"User Access Token \"ci\" is expired"}`, ErrUnauthorized, "a/b: the Hub refuses the token", "HF_TOKEN is wrong or expired"},
		{info, false, 401, code("GatedRepo"), "", ErrGated, "a/b: this repo is gated", "https://hub.test/a/b in a browser, accept the terms, then log in with hf auth login, or set HF_TOKEN"},
		{info, true, 403, code("GatedRepo"), "", ErrGated, "a/b: this repo is gated", "request access at https://hub.test/a/b"},
		{tree, true, 403, nil, "", ErrForbidden, "the token from HF_TOKEN can't list files of a/b", "give the token from HF_TOKEN the right to list files of a/b at https://hub.test/settings"},
		{commit, true, 403, nil, `{"error":"read only"}`, ErrForbidden, "the token from HF_TOKEN can't commit to a/b: read only", "the right to commit to a/b at"},
		{create, true, 403, nil, "", ErrForbidden, "the token from HF_TOKEN can't create repo a/b", "the right to create repo a/b"},
		{create, false, 403, nil, "", ErrForbidden, "create repo a/b: not allowed: 403 Forbidden (POST", "set HF_TOKEN to an access token that has this right"},
		{commit, true, 403, nil, `{"error":"Private repository storage limit reached"}`, ErrQuota, "commit to a/b: storage quota reached: 403", "free or buy storage"},
		{commit, true, 403, nil, `{"error":["Your storage patterns tripped our limits"]}`, ErrQuota, "commit to a/b: storage quota reached: 403", "storage"},
		{commit, true, 413, nil, `{"detail":{"error":"Storage quota exceeded"}}`, ErrQuota, "commit to a/b: storage quota reached: 413 Request Entity Too Large: Storage quota exceeded", "storage"},
		{commit, true, 413, nil, "", errTooLong, "commit to a/b: the request is larger than allowed there: 413", "raise the request limit"},
		{commit, true, 412, nil, `{"errors":[{"message":"moved"}]}`, ErrConflict, "commit to a/b: branch moved: 412 Precondition Failed: moved (", "someone else commits to a/b"},
		{commit, true, 400, nil, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, nil, "commit to a/b: 400 Bad Request: field required (", "report this with the output of -v"},
		{commit, true, 400, nil, `{"error":"Your push was rejected because it contains too many files per directory. Each directory in your git repo can only contain up to 10000 files."}`, ErrTooMany, "commit to a/b: the Hub refuses so many or so large files: 400", "choose another layout"},
		{commit, true, 400, nil, `{"error":"Invalid metadata in README.md.\n- \"license\" must be one of [mit]"}`, ErrCard, "commit to a/b: the Hub refuses the model card: 400 Bad Request: Invalid metadata in README.md. - \"license\" must be", "correct the value that it names"},
		{create, true, 403, said(`You don't have the rights to create a model under the namespace "a"`), "", ErrNamespace, "the token from HF_TOKEN can't create repo a/b: You don't have", "choose your own namespace with --repo-id"},
		{commit, true, 403, said("You must use a write token to upload to a repository."), "", errReadToken, "the token from HF_TOKEN can't commit to a/b: You must use", "make a token for writing"},
		{info, true, 403, said("Access to this resource is disabled."), "", ErrDisabled, "a/b: the Hub has disabled this repo", "https://hub.test/a/b may say why"},
		{info, true, 500, nil, `{"detail":"branch id must consist of letters"}`, nil, "read model info of a/b: 500 Internal Server Error: branch id must consist of letters (GET " + api + "/revision/main, 5 attempts)", hint.Again.String()},
	} {
		t.Run(fmt.Sprint(tt.call.op, tt.status, tt.headers, tt.body), func(t *testing.T) {
			w := script(says(tt.status, tt.body, tt.headers...))
			c, clock := testTransport(t, w, func(o *Options) {
				if !tt.token {
					o.Token, o.TokenSource = "", ""
				}
			})
			_, err := c.call(t.Context(), tt.call, nil)
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(e.Err, tt.want) || (w.Count() == 1) != (clock.Waited() == 0) || clock.Waited() > time.Minute {
				t.Fatalf("%d requests, waited %v, got %v, want %v", w.Count(), clock.Waited(), err, tt.want)
			}
			if words := cmp.Or(e.Brief(), e.Error()); !strings.HasPrefix(words, tt.words) || tt.hint == "" != (hintOf(e) == "") || !strings.Contains(hintOf(e), tt.hint) {
				t.Errorf("%s\nhint: %s", words, hintOf(e))
			}
			if text := err.Error() + hintOf(err); strings.Contains(text, "x=1") || strings.Contains(text, "hf_secret") {
				t.Errorf("it shows too much: %s", text)
			}
		})
	}
}

// TestOutageAfterWorkIsWaitedFor checks that equal answers count as an outage once file bytes have
// moved.
func TestOutageAfterWorkIsWaitedFor(t *testing.T) {
	w := script(says(200, "bytes"), says(500, `{"error":"Internal Error"}`))
	c, clock := testTransport(t, w)
	resp, err := c.exchange(t.Context(), &request{method: "GET", url: "https://hub.test/x", bulk: true})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if _, err := whoAmI(t.Context(), c); clock.Waited() < outagePatience {
		t.Errorf("%v after %v", err, clock.Waited())
	}
}

func TestStorageErrorsAreRead(t *testing.T) {
	w := script(says(403, "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"))
	c, _ := testTransport(t, w)
	_, err := c.call(t.Context(), getRequest("x", "", "https://cdn.test/x?sig=hidden"), nil)
	var e *Error
	if !errors.As(err, &e) || e.Code != "AccessDenied" || e.Message != "Request has expired" || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
	if len(w.Seen[0].Header.Values("Authorization")) != 0 {
		t.Error("token sent to the storage")
	}
}

// TestRevisionHint checks that only someone who named a revision is told to check it.
func TestRevisionHint(t *testing.T) {
	for rev, want := range map[string]string{"main": "was just created", "v2": "check the revision after @"} {
		c, _ := testTransport(t, script(says(404, "", "X-Error-Code: RevisionNotFound")))
		r := c.repoGet("read model info of a/b", "a/b", revPath("revision", rev)+"?blobs=true")
		if _, err := c.call(t.Context(), r, nil); !strings.Contains(hintOf(err), want) {
			t.Errorf("%s: %q (%v)", rev, hintOf(err), err)
		}
	}
}
