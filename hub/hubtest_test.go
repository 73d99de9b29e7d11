package hub_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

const (
	source = "org/model"
	target = "me/model-DF11"
	weight = "model.safetensors"
)

// must ends the test if err isn't nil.
var must = shared.Must

// world is a hub with one model, and a client of it.
type world struct {
	srv *hubtest.Server
	*hub.Client
	clock  *hubtest.JumpClock
	commit string
	data   []byte // of the weight file
}

// newWorld starts both. The model has a large file of n bytes and a small one. The test fails if a
// token reaches the storage host.
func newWorld(t *testing.T, n int, change ...func(*hub.Options)) *world {
	t.Helper()
	return newWorldOn(t, hubtest.Start(t, hubtest.WithMultipart(20_000, 8_000)), n, change...)
}

func newWorldOn(t *testing.T, srv *hubtest.Server, n int, change ...func(*hub.Options)) *world {
	t.Helper()
	w := &world{srv: srv, clock: hubtest.NewJumpClock(time.Now()), data: pattern(n)}
	w.commit = srv.AddRepo(source, map[string][]byte{weight: w.data, "config.json": []byte(`{"a": 1}`), "README.md": []byte("---\nlicense: mit\n---\n")})
	srv.ResetLog()
	opt := hub.Options{Connection: hub.Connection{Endpoint: srv.URL, Token: "hf_test", TokenSource: "HF_TOKEN", Clock: w.clock}, RangeBytes: 4000, BufferBytes: 12_000}
	for _, f := range change {
		f(&opt)
	}
	var err error
	if w.Client, err = hub.New(opt); err != nil {
		t.Fatal(err)
	}
	return w
}

// pattern returns bytes that don't compress or repeat.
func pattern(n int) []byte {
	var out []byte
	sum := sha256.Sum256([]byte("pattern"))
	for len(out) < n {
		out = append(out, sum[:]...)
		sum = sha256.Sum256(sum[:])
	}
	return out[:n]
}

func (w *world) ref() hub.FileRef {
	return hub.FileRef{Repo: source, Commit: w.commit, Path: weight, Size: int64(len(w.data)), SHA256: shared.Sum(w.data)}
}

// stream reads the whole weight file. Wrong bytes are fatal, even before an error.
func (w *world) stream(t *testing.T) error {
	t.Helper()
	s, err := w.Stream(t.Context(), w.ref(), 0, int64(len(w.data)))
	if err != nil {
		return err
	}
	defer s.Close()
	got, err := io.ReadAll(s)
	if !bytes.HasPrefix(w.data, got) || err == nil && len(got) != len(w.data) {
		t.Fatalf("wrong bytes among the %d read", len(got))
	}
	return err
}

// nGets counts the requests for file bytes at the storage host.
func (w *world) nGets() int { return w.srv.Count("GET", "/repos/*") }

// nHeads counts the metadata requests.
func (w *world) nHeads() int { return w.srv.Count("HEAD", "*/resolve/*") }

// noSecret fails the test if an error shows the token or a signature.
func noSecret(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, s := range []string{"hf_test", "Signature", "X-Amz"} {
		if strings.Contains(err.Error()+hub.Hint(err), s) {
			t.Errorf("error shows %q: %v", s, err)
		}
	}
}

// first returns the result of uploading one file.
func first(ops []hub.Op, err error) (hub.Op, error) {
	if err != nil {
		return hub.Op{}, err
	}
	return ops[0], nil
}
