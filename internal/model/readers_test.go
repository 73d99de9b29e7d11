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

// formula is an endless file whose bytes repeat with an odd period, after a head of its own.
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

// generated is a hub with one file that is never stored, and a reader of it.
func generated(t *testing.T, size int64) (*hubtest.Server, *pieceReader) {
	t.Helper()
	srv := hubtest.Start(t)
	commit, err := srv.AddGenerated("a/b", "x.safetensors", size, fmt.Sprintf("%064x", 1), formula{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := hub.New(hub.Options{Endpoint: srv.URL, Token: "hf_test"})
	if err != nil {
		t.Fatal(err)
	}
	ref := hub.FileRef{Repo: "a/b", Commit: commit, Path: "x.safetensors", Size: size, SHA256: fmt.Sprintf("%064x", 1)}
	readers := NewReaders(t.Context(), c, 0)
	t.Cleanup(func() { readers.Close() })
	return srv, &pieceReader{readers, ref}
}

// fetched counts the ranges that the storage host was asked for, and their bytes.
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

// TestPiecesGrow: single reads cost little, and a reader that goes on gets larger and larger pieces.
func TestPiecesGrow(t *testing.T) {
	const size = 64<<20 + 12345
	srv, h := generated(t, size)
	readAndCompare(t, h, 0, 8)
	readAndCompare(t, h, 8, 20_000)
	readAndCompare(t, h, size/2, 4)
	readAndCompare(t, h, size-1, 1)
	if n, nBytes := fetched(srv); n != 3 || nBytes > 3*smallestPiece {
		t.Errorf("%d requests, %d bytes for three places", n, nBytes)
	}
	if k, err := h.ReadAt(make([]byte, 10), size-3); k != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("across the end: %d, %v", k, err)
	}
	srv.ResetLog()
	for off := int64(0); off < 40<<20; off += 100_000 {
		readAndCompare(t, h, off, min(100_000, size-off))
	}
	h.behind.Wait()
	if n, nBytes := fetched(srv); n > 24 || nBytes > (40+4+4*piecesAhead)<<20 { // it grows anew behind the piece in the middle
		t.Errorf("%d requests, %d bytes for 40 MiB in order", n, nBytes)
	}
	srv.ResetLog()
	readAndCompare(t, h, 57<<20+7, 3<<20)
	if n, _ := fetched(srv); n != 1 {
		t.Errorf("%d requests for one long read", n)
	}
}

// TestPiecesAtRandom: whatever is read in whatever order, also at once, the bytes are right, none is fetched twice while
// there is room, and the room is kept.
func TestPiecesAtRandom(t *testing.T) {
	const size = 20<<20 + 999
	srv, h := generated(t, size)
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
	if _, nBytes := fetched(srv); nBytes > size || nBytes != h.nBytes {
		t.Errorf("%d bytes fetched, %d kept, of %d", nBytes, h.nBytes, size)
	}
	at := int64(0)
	for _, p := range h.files["x.safetensors"] {
		if p.off < at || int64(len(p.data)) != p.n {
			t.Errorf("piece at %d of %d bytes begins before %d", p.off, p.n, at)
		}
		at = p.off + p.n
	}
}

// TestPiecesKeepTheirRoom: old pieces make room for new ones, and a failed one for another try.
func TestPiecesKeepTheirRoom(t *testing.T) {
	const size = 300 << 20
	srv, h := generated(t, size)
	for off := int64(0); off < size; off += 8 << 20 {
		readAndCompare(t, h, off, 4<<20)
		if h.nBytes > piecesBytes {
			t.Fatalf("%d bytes are kept", h.nBytes)
		}
	}
	readAndCompare(t, h, 280<<20, 10)
	if n, _ := fetched(srv); n != 39 || len(h.files["x.safetensors"]) != h.order.Len() {
		t.Errorf("%d requests, %d pieces in the list of %d", n, len(h.files["x.safetensors"]), h.order.Len())
	}
	srv.Inject(hubtest.Fault{Name: "400-range"})
	if _, err := h.ReadAt(make([]byte, 1), 6<<20); err == nil {
		t.Error("no error")
	}
	readAndCompare(t, h, 6<<20, 1)
}

// TestPiecesInLittleRoom: with little room, some readers that go on side by side still fetch each byte once, and what is
// kept stays within it.
func TestPiecesInLittleRoom(t *testing.T) {
	const size, room, readers = 24 << 20, 8 << 20, 4
	srv, h := generated(t, size)
	h.setLimit(room)
	for off := int64(0); off < size/readers; off += 50_000 {
		for i := range int64(readers) {
			at := i*size/readers + off
			readAndCompare(t, h, at, min(50_000, (i+1)*size/readers-at))
			if n := h.nBytes; n > room {
				t.Fatalf("%d bytes are kept", n)
			}
		}
	}
	h.behind.Wait()
	if _, nBytes := fetched(srv); nBytes != size {
		t.Errorf("%d bytes fetched for %d", nBytes, size)
	}
}

// closing is a Hub whose storage takes requests and closes the connection.
type closing struct{ http.RoundTripper }

func (c closing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasSuffix(r.URL.Path, ".json") {
		return nil, io.EOF
	}
	return c.RoundTripper.RoundTrip(r)
}

// TestAConnectionThatIsClosedNeverMakesAModelInvalid: that nothing can be read says nothing of what is there.
func TestAConnectionThatIsClosedNeverMakesAModelInvalid(t *testing.T) {
	srv := hubtest.Start(t)
	layout, err := safetensors.NewLayout(nil, []safetensors.Entry{{Name: "x", DType: "U8", Shape: []int64{1 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	srv.AddRepo("a/b", map[string][]byte{"config.json": []byte(`{"dfloat11_config": {"threads_per_block": [512], "bytes_per_thread": 8, "pattern_dict": {"x": []}}}`)})
	if _, err := srv.AddGenerated("a/b", "x.safetensors", layout.Size, strings.Repeat("0", 64), formula{layout.Header}); err != nil {
		t.Fatal(err)
	}
	c, err := hub.New(hub.Options{Endpoint: srv.URL, Token: "hf_test", HTTPTransport: closing{http.DefaultTransport}, Clock: hubtest.NewJumpClock(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	_, err = OpenDF11Hub(t.Context(), c, "a/b", "", 0)
	if e := (*hub.Error)(nil); !errors.As(err, &e) || hub.Hint(err) == "" {
		t.Errorf("told as %v", err)
	}
}
