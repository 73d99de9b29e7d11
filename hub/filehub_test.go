package hub

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

const testCommit = "0123456789abcdef0123456789abcdef01234567"

// fileHub is a hub in memory with one large file, whose storage may answer in other ways.
type fileHub struct {
	*hubtest.Server
	data   []byte
	commit string

	mu    sync.Mutex
	gets  []string // requested ranges
	fault func(n int, r *http.Request, good *http.Response) (*http.Response, error)
}

func newFileHub(t *testing.T, n int) *fileHub {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i*7 + i>>8*13 + i>>16)
	}
	h := &fileHub{Server: hubtest.Start(t, hubtest.InMemory("https://hub.test", "https://cdn.test")), data: data}
	h.commit = h.AddRepo("a/b", map[string][]byte{"model.safetensors": data})
	return h
}

func gitBlobHash(data []byte) string { return hashLike(testCommit, data) }

func (h *fileHub) ref() FileRef {
	return FileRef{Repo: "a/b", Commit: h.commit, Path: "model.safetensors", Size: int64(len(h.data)), SHA256: world.Sum(h.data)}
}

func (h *fileHub) RoundTrip(r *http.Request) (*http.Response, error) {
	good, err := h.Server.RoundTrip(r)
	if err != nil || r.URL.Host == "hub.test" {
		return good, err
	}
	h.mu.Lock()
	h.gets = append(h.gets, strings.TrimPrefix(r.Header.Get("Range"), "bytes="))
	n, fault := len(h.gets), h.fault
	h.mu.Unlock()
	if fault != nil {
		return fault(n, r, good)
	}
	return good, nil
}

// nGets returns how many GETs the storage got.
func (h *fileHub) nGets() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.gets)
}

// cutBody returns the first n bytes of a body and then err.
func cutBody(resp *http.Response, n int64, err error) *http.Response {
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(resp.Body, n), errReader{err}), resp.Body}
	return resp
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// smallRanges splits every file into many ranges.
func smallRanges(o *Options) { o.RangeBytes, o.BufferBytes = 1000, 4000 }

// streamAll reads a whole file and compares it.
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
