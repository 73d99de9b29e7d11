package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// formula is an endless file. After a head of its own, its bytes repeat with an odd period.
type formula struct{ head []byte }

var period = func() []byte {
	b, rng := make([]byte, 1<<20+7), rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(b)
	return b
}()

func (f formula) ReadAt(p []byte, off int64) (int, error) {
	for n := 0; n < len(p); {
		n += copy(p[n:], period[(off+int64(n))%int64(len(period)):])
	}
	if off < int64(len(f.head)) {
		copy(p, f.head[off:])
	}
	return len(p), nil
}

// generated returns a hub with one file that's never stored, and a reader of it that keeps at most
// limit bytes.
func generated(t *testing.T, size, limit int64) (*hubtest.Server, *pieceReader) {
	t.Helper()
	srv := hubtest.Start(t)
	commit, err := srv.AddGenerated("a/b", "x.safetensors", size, fmt.Sprintf("%064x", 1), formula{})
	must(t, err)
	c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: srv.URL, Token: "hf_test"}})
	must(t, err)
	ref := hub.FileRef{Repo: "a/b", Commit: commit, Path: "x.safetensors", Size: size, SHA256: fmt.Sprintf("%064x", 1)}
	r := newRemote(c, ref.Repo, []hub.FileRef{ref})
	r.pieces = newReaders(t.Context(), limit)
	t.Cleanup(func() { r.Close() })
	return srv, r.weights(ref.Path).(*pieceReader)
}

// fetched returns how many ranges the storage host was asked for, and their bytes.
func fetched(srv *hubtest.Server) (n int, nBytes int64) {
	for _, q := range srv.Requests() {
		var begin, last int64
		if k, _ := fmt.Sscanf(q.Header.Get("Range"), "bytes=%d-%d", &begin, &last); k == 2 && q.Host == hubtest.HostCDN {
			n, nBytes = n+1, nBytes+last-begin+1
		}
	}
	return n, nBytes
}

func readAndCompare(t *testing.T, h *pieceReader, off, n int64) {
	t.Helper()
	got, want := make([]byte, n), make([]byte, n)
	if k, err := h.ReadAt(got, off); int64(k) != n || err != nil {
		t.Errorf("%d bytes at %d: got %d, %v", n, off, k, err)
	}
	_, _ = formula{}.ReadAt(want, off)
	if !bytes.Equal(got, want) {
		t.Errorf("wrong bytes at %d", off)
	}
}

// TestPiecesAtRandom checks that reads in any order, also at once, return the right bytes, and that
// nothing is fetched twice while there is space.
func TestPiecesAtRandom(t *testing.T) {
	const size = 20<<20 + 999
	srv, h := generated(t, size, 0)
	var readers sync.WaitGroup
	for seed := range uint64(4) {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 60 {
				off := rng.Int64N(size)
				readAndCompare(t, h, off, min(size-off, 1+rng.Int64N(1<<rng.IntN(21))))
			}
		})
	}
	readers.Wait()
	h.behind.Wait()
	if n, nBytes := fetched(srv); n > 6 || nBytes > size {
		t.Errorf("%d bytes fetched in %d requests, of %d", nBytes, n, size)
	}
	if k, err := h.ReadAt(make([]byte, 10), size-3); k != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("across the end: %d, %v", k, err)
	}
}

// TestPiecesInLittleRoom checks that several in-order readers fetch each byte once within the space
// there is, and that a failed piece can be read again.
func TestPiecesInLittleRoom(t *testing.T) {
	const size, room, readers = 48 << 20, 8 << 20, 4
	srv, h := generated(t, size, room)
	for off := int64(0); off < size/readers; off += 50_000 {
		for i := range int64(readers) {
			at := i*size/readers + off
			readAndCompare(t, h, at, min(50_000, (i+1)*size/readers-at))
		}
	}
	h.behind.Wait()
	// past the end of its share, each reader's next pieces are another's first
	ahead := int64(readers * (1 + piecesAhead))
	if n, nBytes := fetched(srv); nBytes > size+ahead*h.pieceBytes || n > int(size/h.pieceBytes+ahead) {
		t.Errorf("%d bytes fetched for %d in %d requests", nBytes, size, n)
	}
	if kept := int64(len(h.pieces)) * h.pieceBytes; kept > room {
		t.Errorf("%d bytes are kept", kept)
	}
	srv.Inject(hubtest.Fault{Name: "400-range"})
	if _, err := h.ReadAt(make([]byte, 1), 1<<20); err == nil {
		t.Error("no error")
	}
	readAndCompare(t, h, 1<<20, 1)
}

// TestReadersReadAhead checks that a reader that goes on in order has its next pieces fetched before it
// asks for them, and that a reader that jumps has not.
func TestReadersReadAhead(t *testing.T) {
	const size = 1 << 30
	for _, tt := range []struct {
		read []int64 // pieces
		want int
	}{
		{[]int64{0}, 1}, {[]int64{0, 1}, 2 + piecesAhead}, {[]int64{7, 3, 9}, 3}, {[]int64{1, 0}, 2},
		{[]int64{0, 1, 2}, 3 + piecesAhead}, {[]int64{0, 5, 6}, 3 + piecesAhead},
	} {
		srv, h := generated(t, size, 0)
		for _, piece := range tt.read {
			readAndCompare(t, h, piece*h.pieceBytes, 10)
		}
		h.behind.Wait()
		if n, nBytes := fetched(srv); n != tt.want || nBytes != int64(n)*h.pieceBytes {
			t.Errorf("after pieces %d: %d ranges with %d bytes, want %d", tt.read, n, nBytes, tt.want)
		}
	}
}

// closing is a Hub whose storage accepts requests and closes the connection.
type closing struct{ http.RoundTripper }

func (c closing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasSuffix(r.URL.Path, ".json") {
		return nil, io.EOF
	}
	return c.RoundTripper.RoundTrip(r)
}

// TestAConnectionThatIsClosedNeverMakesAModelInvalid checks that a failed read says nothing about
// the model.
func TestAConnectionThatIsClosedNeverMakesAModelInvalid(t *testing.T) {
	srv := hubtest.Start(t)
	layout, err := safetensors.NewHeader(nil, []safetensors.Entry{{Name: "x", DType: "U8", Shape: []int64{1 << 20}}})
	must(t, err)
	srv.AddRepo("a/b", map[string][]byte{"config.json": []byte(`{"dfloat11_config": {"version": "0.5.0", "threads_per_block": [512], "bytes_per_thread": 8, "pattern_dict": {"x": []}}}`)})
	if _, err := srv.AddGenerated("a/b", "x.safetensors", layout.Size(), strings.Repeat("0", 64), formula{layout.Bytes()}); err != nil {
		t.Fatal(err)
	}
	c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: srv.URL, Token: "hf_test", HTTPTransport: closing{http.DefaultTransport}, Clock: hubtest.NewJumpClock(time.Now())}})
	must(t, err)
	_, err = OpenDF11Hub(t.Context(), c, "a/b", "", 0, 0)
	if e := (*hub.Error)(nil); !errors.As(err, &e) || hub.Hint(err) == "" {
		t.Errorf("the error is %v", err)
	}
}
