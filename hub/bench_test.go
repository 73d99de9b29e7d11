package hub

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// BenchmarkStream reads a file over loopback sockets.
func BenchmarkStream(b *testing.B) {
	data := make([]byte, 128<<20)
	etag := sha(data)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Repo-Commit", testCommit)
		w.Header().Set("ETag", strconv.Quote(etag))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	defer srv.Close()
	c, err := New(Options{Endpoint: srv.URL})
	if err != nil {
		b.Fatal(err)
	}
	ref := FileRef{Repo: "a/b", Commit: testCommit, Path: "m", Size: int64(len(data)), SHA256: etag}
	b.SetBytes(ref.Size)
	b.ReportAllocs()
	for b.Loop() {
		s, err := c.Stream(b.Context(), ref, 0, ref.Size)
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, s); n != ref.Size || err != nil {
			b.Fatal(n, err)
		}
		s.Close()
	}
}
