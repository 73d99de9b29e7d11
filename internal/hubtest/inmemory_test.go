package hubtest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestInMemory: without a network, a server answers as it does with one. An answer begins before its
// body ends, a cut connection is a reset, and Close cuts what stalls.
func TestInMemory(t *testing.T) {
	s := Start(t, InMemory("http://hub.test", "http://cdn.test"))
	s.AddRepo("me/m", map[string][]byte{"README.md": []byte("# x\n"), "w.safetensors": []byte("weights")})
	send := func(ctx context.Context, method, url string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.RoundTrip(r)
	}
	read := func(method, url string) (string, *http.Response, error) {
		t.Helper()
		resp, err := send(t.Context(), method, url)
		if err != nil {
			return "", nil, err
		}
		b, err := io.ReadAll(resp.Body)
		return string(b), resp, errors.Join(err, resp.Body.Close())
	}
	const file = "http://hub.test/me/m/resolve/main/README.md"
	if body, resp, err := read("GET", file); err != nil || resp.StatusCode != 200 || body != "# x\n" || resp.ContentLength != 4 {
		t.Errorf("%q, %v, %v", body, resp, err)
	}
	if body, resp, err := read("HEAD", file); err != nil || body != "" || resp.ContentLength != 4 {
		t.Errorf("HEAD: %q, %v, %v", body, resp, err)
	}
	_, resp, err := read("GET", "http://hub.test/me/m/resolve/main/w.safetensors")
	if err != nil || !strings.HasPrefix(resp.Header.Get("Location"), "http://cdn.test/") {
		t.Fatal(resp, err)
	}
	link := resp.Header.Get("Location")
	if body, _, err := read("GET", link); err != nil || body != "weights" || s.Requests()[len(s.Requests())-1].Host != HostCDN {
		t.Errorf("%q, %v", body, err)
	}
	s.Inject(Fault{Host: HostCDN, Action: func(x *Exchange) {
		x.Header().Set("Content-Length", "7")
		_, _ = io.WriteString(x, "wei")
		panic(http.ErrAbortHandler)
	}})
	if body, _, err := read("GET", link); body != "wei" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a cut answer: %q, %v", body, err)
	}
	s.ClearFaults()
	s.Inject(Fault{Name: "hub-stall", Times: Always})
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	stop(why)
	if _, err := send(ctx, "GET", "http://hub.test/api/models/me/m"); !errors.Is(err, why) {
		t.Errorf("a request that was given up: %v", err)
	}
	s.done.Wait()
	s.ClearFaults()
	s.Inject(Fault{Host: HostHub, Action: func(x *Exchange) {
		_, _ = io.WriteString(x, "half")
		<-x.Request.Context().Done()
		panic(http.ErrAbortHandler)
	}})
	half, err := send(t.Context(), "GET", file)
	if err != nil || half.StatusCode != 200 {
		t.Fatal(half, err)
	}
	begun := make([]byte, 4)
	if _, err := io.ReadFull(half.Body, begun); err != nil || string(begun) != "half" {
		t.Errorf("%q, %v", begun, err)
	}
	s.Close()
	if _, err := io.ReadAll(half.Body); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an answer after Close: %v", err)
	}
	_ = half.Body.Close()
}
