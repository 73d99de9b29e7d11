package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

func TestStreamLengths(t *testing.T) {
	for _, n := range []int{0, 1, 999, 1000, 1001, 4000, 25_500} {
		h := newFileHub(t, n)
		c, _ := testClient(t, h, smallRanges)
		if err := streamAll(t, c, h); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		if want := (n + 999) / 1000; h.nGets() != want || h.Count("HEAD", "*") > 1 {
			t.Errorf("%d bytes: %d heads, %d gets", n, h.Count("HEAD", "*"), h.nGets())
		}
		if !allFree(c) {
			t.Errorf("%d bytes: buffers or connections are not given back", n)
		}
	}
}

func TestSpans(t *testing.T) {
	h := newFileHub(t, 9000)
	c, _ := testClient(t, h, smallRanges)
	s, err := c.Stream(t.Context(), h.ref(), 1500, 7777)
	must(t, err)
	defer s.Close()
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, h.data[1500:7777]) {
		t.Errorf("a stream of %d bytes, %v", len(got), err)
	}
	before := h.nGets()
	if got, err := c.ReadRange(t.Context(), h.ref(), 1234, 5000); err != nil || !bytes.Equal(got, h.data[1234:6234]) || h.nGets() != before+1 {
		t.Errorf("a range of %d bytes, %d gets, %v", len(got), h.nGets()-before, err)
	}
	for _, span := range [][2]int64{{-1, 4}, {1, 0}, {8999, 9001}} {
		if _, err := c.ReadRange(t.Context(), h.ref(), span[0], span[1]-span[0]); err == nil {
			t.Errorf("the range %v was read", span)
		}
		if _, err := c.Stream(t.Context(), h.ref(), span[0], span[1]); err == nil {
			t.Errorf("the stream %v was read", span)
		}
	}
}

func onFirst(f func(*http.Request, *http.Response) (*http.Response, error)) func(int, *http.Request, *http.Response) (*http.Response, error) {
	return func(n int, r *http.Request, good *http.Response) (*http.Response, error) {
		if n == 1 {
			return f(r, good)
		}
		return good, nil
	}
}

// TestProgressResetsTheCount checks that connections that bring enough are continued, however many
// break, and that drips aren't.
func TestProgressResetsTheCount(t *testing.T) {
	for brings, most := range map[int64]int{minProgress: 20, 10: 20} {
		h := newFileHub(t, 20*minProgress)
		h.fault = func(_ int, _ *http.Request, g *http.Response) (*http.Response, error) {
			return cutBody(g, brings, syscall.ECONNRESET), nil
		}
		c, _ := testClient(t, h)
		if err := streamAll(t, c, h); (err == nil) != (brings == minProgress) || err != nil && !errors.Is(err, syscall.ECONNRESET) || h.nGets() > most {
			t.Errorf("%d bytes at a time: %d gets, %v", brings, h.nGets(), err)
		}
	}
}

// TestCauseIsNotOurs checks that a read which ends because another request failed leaves the error
// of that request as it is: all reads of a run share it.
func TestCauseIsNotOurs(t *testing.T) {
	h := newFileHub(t, 3000)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := &Error{Op: "read another file", progress: true}
	h.fault = onFirst(func(r *http.Request, _ *http.Response) (*http.Response, error) {
		cancel(cause)
		return reply(r, 302, "", "Location: "+r.URL.String()), nil
	})
	c, _ := testClient(t, h)
	_, err := c.ReadRange(ctx, FileRef{Repo: "a/b", Commit: h.commit, Path: "model.safetensors", Size: 3000}, 0, 3000)
	if !errors.Is(err, cause) || !cause.progress {
		t.Errorf("%v; progress %t", err, cause.progress)
	}
}

func TestReadFileChecksItsHash(t *testing.T) {
	h := newFileHub(t, 3000)
	h.fault = onFirst(func(r *http.Request, _ *http.Response) (*http.Response, error) {
		return reply(r, 206, strings.Repeat("x", 3000), "Content-Range: bytes 0-2999/3000"), nil
	})
	c, _ := testClient(t, h)
	got, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: h.commit, Path: "model.safetensors"}, 3000)
	if err != nil || !bytes.Equal(got, h.data) || h.nGets() != 2 {
		t.Fatalf("%d gets, %v", h.nGets(), err)
	}
	h.fault = func(_ int, r *http.Request, _ *http.Response) (*http.Response, error) {
		return reply(r, 206, strings.Repeat("x", 3000), "Content-Range: bytes 0-2999/3000"), nil
	}
	if _, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: h.commit, Path: "model.safetensors"}, 3000); !errors.Is(err, ErrCorrupt) || h.nGets() != 4 {
		t.Errorf("wrong bytes for ever: %d gets, %v", h.nGets(), err)
	}
	if _, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: h.commit, Path: "model.safetensors"}, 2999); !errors.Is(err, ErrTooLarge) || h.nGets() != 4 {
		t.Errorf("too large: %d gets, %v", h.nGets(), err)
	}
	for _, span := range [][2]int64{{-1, 5}, {0, -1}, {2999, 2}, {4000, 1}, {1 << 62, 1 << 62}} {
		f := FileRef{Repo: "a/b", Commit: h.commit, Path: "model.safetensors", Size: 3000}
		_, err := c.ReadRange(t.Context(), f, span[0], span[1])
		_, streamed := c.Stream(t.Context(), f, span[0], span[0]+span[1])
		for _, err := range []error{err, streamed} {
			if !errors.Is(err, ErrArgument) || errors.Is(err, ErrCorrupt) {
				t.Errorf("range %d: %v", span, err)
			}
		}
	}
	if _, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: "../x"}, 10); !errors.Is(err, ErrUnsafePath) {
		t.Errorf("unsafe: %v", err)
	}
}

// TestAStorageIsNeverTakenForTheHub checks a hub that answers the metadata request itself and
// redirects only the GET to its storage. The ETag there is of another kind, and a refusal means
// that the link expired.
func TestAStorageIsNeverTakenForTheHub(t *testing.T) {
	data := "0123456789"
	nLinks, nGets := 0, 0
	w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		switch {
		case r.Method == http.MethodHead:
			return reply(r, 200, data, "X-Repo-Commit: "+testCommit, `ETag: W/"`+world.Sum([]byte(data))+`"`), nil
		case r.URL.Host == "hub.test":
			nLinks++
			return reply(r, 302, "", fmt.Sprintf("Location: https://cdn.test/x?link=%d", nLinks)), nil
		}
		if nGets++; nGets == 1 {
			return reply(r, 403, ""), nil
		}
		return reply(r, 206, data, "Content-Range: bytes 0-9/10", `ETag: "md5-7"`), nil
	}}
	c, _ := testClient(t, w)
	got, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: "x"}, 100)
	if err != nil || string(got) != data || nLinks != 2 {
		t.Errorf("%q after %d links, %v", got, nLinks, err)
	}
}

func TestContentRange(t *testing.T) {
	for value, ok := range map[string]bool{
		"bytes 10-19/100": true, "bytes 10-19/*": true, "bytes 10-15/100": true,
		"bytes 9-19/100": false, "bytes 10-20/100": false, "bytes 10-9/100": false, "bytes 10-19/99": false,
		"bytes */100": false, "10-19/100": false, "bytes 10-19": false, "": false, "bytes a-b/c": false,
	} {
		if err := checkContentRange(value, 10, 20, 100); (err == nil) != ok {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// allFree reports whether every buffer and connection was returned.
func allFree(c *Client) bool {
	d := c.files
	free := d.conns.TryAcquire(d.transfers)
	if free {
		d.conns.Release(d.transfers)
	}
	return len(d.buffers) == cap(d.buffers) && free
}
