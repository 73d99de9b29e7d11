package hubtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestDownloadsFromStorage checks what clients rely on when they fetch parts of a file (RFC 9110,
// section 14): a range is 206 and says where it is, one past the end is 416 with the size, and HEAD has
// GET's header without a body.
func TestDownloadsFromStorage(t *testing.T) {
	s := Start(t)
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": []byte("0123456789")})
	link := location(t, s, "me/m", "w.safetensors")
	for _, tc := range []struct {
		method, asked string
		status        int
		body, at      string // at is Content-Range
	}{
		{"GET", "", 200, "0123456789", ""},
		{"GET", "bytes=0-", 206, "0123456789", "bytes 0-9/10"},
		{"GET", "bytes=3-5", 206, "345", "bytes 3-5/10"},
		{"GET", "bytes=8-99", 206, "89", "bytes 8-9/10"},
		{"GET", "bytes=10-", 416, "", "bytes */10"},
		{"HEAD", "", 200, "", ""},
		{"HEAD", "bytes=3-5", 206, "", "bytes 3-5/10"},
	} {
		a := ask(t, tc.method, link, "", "", "Range", tc.asked)
		if tc.status == 416 {
			a.body = ""
		}
		if a.status != tc.status || a.body != tc.body || a.header.Get("Content-Range") != tc.at || tc.status < 400 && a.header.Get("Accept-Ranges") != "bytes" {
			t.Errorf("%s %q: %d %q, %v", tc.method, tc.asked, a.status, a.body, a.header)
		}
	}
}

// TestLinksExpire: a link is valid until its time is over, as it says itself.
func TestLinksExpire(t *testing.T) {
	clock := NewJumpClock(Noon)
	s := Start(t, WithClock(clock.Now))
	data := []byte("weights")
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": data})
	for name, tc := range map[string]struct {
		method, link string
		seconds      int
	}{
		"download": {"GET", location(t, s, "me/m", "w.safetensors"), 3600},
		"upload":   {"PUT", batch(t, s, "me/m", []byte("more")).Actions["upload"].Href, 900},
	} {
		at, err := url.Parse(tc.link)
		if err != nil || at.Query().Get("X-Amz-Expires") != fmt.Sprint(tc.seconds) {
			t.Errorf("%s: %s, %v", name, tc.link, err)
		}
		if a := ask(t, tc.method, tc.link, "", "more"); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	upload, download := batch(t, s, "me/m", []byte("other")).Actions["upload"].Href, location(t, s, "me/m", "w.safetensors")
	for _, tc := range []struct {
		wait             time.Duration
		uploads, fetches int
	}{{15 * time.Minute, 200, 200}, {time.Second, 403, 200}, {45*time.Minute - time.Second, 403, 200}, {time.Second, 403, 403}} {
		world.Must(t, clock.Sleep(t.Context(), tc.wait))
		up, down := ask(t, "PUT", upload, "", "other"), ask(t, "GET", download, "", "")
		if up.status != tc.uploads || down.status != tc.fetches || down.status == 403 && !strings.Contains(down.body, "Request has expired") {
			t.Errorf("after %s: %d and %d %s", tc.wait, up.status, down.status, down.body)
		}
	}
}

// TestUploadsToStorage checks what S3 refuses of a PUT: a body of unknown length
// (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, NotImplemented), more than
// 5 GiB, and a body that ends early. None of these is stored.
func TestUploadsToStorage(t *testing.T) {
	s := Start(t)
	s.AddRepo("me/m", map[string][]byte{"w.safetensors": []byte("w")})
	data := []byte("0123456789")
	actions := batch(t, s, "me/m", data).Actions
	for name, tc := range map[string]struct {
		header, body string
		status       int
		code         string
	}{
		"no length":   {"Transfer-Encoding: chunked", "a\r\n0123456789\r\n0\r\n\r\n", 501, "NotImplemented"},
		"too long":    {"Content-Length: 5368709121", "0123456789", 400, "EntityTooLarge"},
		"ends early":  {"Content-Length: 10", "012345678", 400, "RequestTimeout"},
		"other bytes": {"Content-Length: 10", "0123456780", 200, ""},
	} {
		if status, body := put(t, actions["upload"].Href, tc.header, tc.body); status != tc.status || !strings.Contains(body, tc.code) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		verified := ask(t, "POST", actions["verify"].Href, "tok", fmt.Sprintf(`{"oid":%q,"size":10}`, world.Sum(data)))
		if verified.status != http.StatusNotFound {
			t.Errorf("%s: then it's verified: %d %s", name, verified.status, verified.body)
		}
	}
}

// put sends a PUT with one header line and this body, and nothing more.
func put(t *testing.T, link, header, body string) (status int, answer string) {
	t.Helper()
	at, err := url.Parse(link)
	world.Must(t, err)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at.Host)
	world.Must(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n%s", at.RequestURI(), at.Host, header, body)
	world.Must(t, err)
	world.Must(t, conn.(*net.TCPConn).CloseWrite())
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	world.Must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	world.Must(t, err)
	return resp.StatusCode, string(b)
}
