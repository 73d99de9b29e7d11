package hub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const testCommit = "0123456789abcdef0123456789abcdef01234567"

// fileHub serves one large file: metadata on hub.test, bytes on cdn.test behind
// links that are numbered, so that old ones can be refused.
type fileHub struct {
	t    *testing.T
	data []byte
	etag string

	mu    sync.Mutex
	link  int // the only link that is good
	heads int
	gets  []string // ranges asked for
	fault func(n int, r *http.Request, good *http.Response) (*http.Response, error)
}

func newFileHub(t *testing.T, n int) *fileHub {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i*7 + i>>8*13 + i>>16)
	}
	return &fileHub{t: t, data: data, etag: sha(data)}
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (h *fileHub) ref() FileRef {
	return FileRef{Repo: "a/b", Commit: testCommit, Path: "model.safetensors", Size: int64(len(h.data)), SHA256: h.etag}
}

func (h *fileHub) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.URL.Host == "hub.test" && r.Method == http.MethodHead {
		return h.head(r), nil
	}
	if r.Header.Get("Authorization") != "" {
		h.t.Error("token sent to the storage")
	}
	h.mu.Lock()
	h.gets = append(h.gets, strings.TrimPrefix(r.Header.Get("Range"), "bytes="))
	n, fault := len(h.gets), h.fault
	good := h.get(r)
	h.mu.Unlock()
	if fault != nil {
		return fault(n, r, good)
	}
	return good, nil
}

func (h *fileHub) head(r *http.Request) *http.Response {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heads++
	resp := reply(r, 302, "", "X-Repo-Commit: "+testCommit, `X-Linked-Etag: "`+h.etag+`"`,
		"X-Linked-Size: "+strconv.Itoa(len(h.data)), fmt.Sprintf("Location: https://cdn.test/blob?link=%d", h.link))
	resp.ContentLength = 1234 // the redirect's own body
	return resp
}

func (h *fileHub) get(r *http.Request) *http.Response {
	if r.URL.Query().Get("link") != strconv.Itoa(h.link) {
		return reply(r, 403, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
	}
	var begin, last int
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &begin, &last); err != nil {
		return reply(r, 400, "range please")
	}
	if r.Header.Get("Accept-Encoding") != "identity" {
		h.t.Error("Accept-Encoding is not identity")
	}
	last = min(last, len(h.data)-1)
	return reply(r, 206, string(h.data[begin:last+1]), fmt.Sprintf("Content-Range: bytes %d-%d/%d", begin, last, len(h.data)))
}

// nGets is how many GETs the storage saw.
func (h *fileHub) nGets() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.gets)
}

// cutBody gives the first n bytes of a body and then err.
func cutBody(resp *http.Response, n int64, err error) *http.Response {
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(resp.Body, n), errReader{err}), resp.Body}
	return resp
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// smallRanges makes every file many ranges.
func smallRanges(o *Options) { o.RangeBytes, o.BufferBytes = 1000, 4000 }

// streamAll reads a whole file and compares.
func streamAll(t *testing.T, c *Client, h *fileHub) error {
	t.Helper()
	s, err := c.Stream(t.Context(), h.ref(), 0, int64(len(h.data)))
	if err != nil {
		return err
	}
	defer s.Close()
	got, err := io.ReadAll(s)
	if err == nil && !bytes.Equal(got, h.data) {
		t.Fatal("bytes differ")
	}
	if !bytes.HasPrefix(h.data, got) {
		t.Fatal("bytes before the error differ")
	}
	return err
}
