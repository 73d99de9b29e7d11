package pipeline_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/proof"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestKeepWeights: the weights end up in the shared cache, a second conversion reads them there, and the result is the
// same as without.
func TestKeepWeights(t *testing.T) {
	t.Parallel()
	srv := hubtest.Start(t)
	srv.AddModel("a/llama", hubtest.NewLlama(7, partsModel))
	if _, err := pushFrom(t, srv, "a/llama", "a/plain", nil); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	keep := func(o *pipeline.Options) {
		c, err := hub.New(hub.Options{Endpoint: srv.URL, Token: "hf_test", CacheDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		src, m, err := model.OpenHub(t.Context(), c, "a/llama", "", plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.Source, o.Model = model.KeepWeights(src), m
	}
	for _, target := range []string{"a/first", "a/second"} {
		srv.ResetLog()
		if _, err := pushFrom(t, srv, "a/llama", target, keep); err != nil {
			t.Fatal(err)
		}
		if got, want := contents(srv, target), contents(srv, "a/plain"); !maps.Equal(got, want) {
			t.Errorf("%s differs from a conversion without the cache", target)
		}
	}
	c, err := hub.New(hub.Options{Endpoint: srv.URL, CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.Info(t.Context(), "a/llama", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range info.Files {
		if _, ok := c.CachedPath(f.Ref(info.ID, info.SHA)); f.SHA256 != "" && !ok {
			t.Errorf("%s is not in the cache", f.Path)
		}
	}
}

// fillCache puts every file of a model into a new shared cache, and gives it with the folder of the copies.
func fillCache(t *testing.T, c *hub.Client, cache string) (blobs string, refs map[string]hub.FileRef) {
	t.Helper()
	info, err := c.Info(t.Context(), sourceRepo, "")
	if err != nil {
		t.Fatal(err)
	}
	refs = map[string]hub.FileRef{}
	for _, f := range info.Files {
		ref := f.Ref(info.ID, info.SHA)
		data, err := c.ReadFile(t.Context(), f.Ref(info.ID, info.SHA), f.Size)
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.CacheCreate(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Cleanup()
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		refs[f.Path] = ref
	}
	return filepath.Join(cache, "models--org--model", "blobs"), refs
}

// cacheWorld is a world whose source client uses a full shared cache. spoil changes one of its files.
func cacheWorld(t *testing.T, keep bool) (w *world, log *bytes.Buffer, spoil func(path string, change func([]byte) []byte) (copied string)) {
	t.Helper()
	m := hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 3, ShardBytes: 30_000, Extra: map[string][]byte{
		"df11.png": []byte("a picture"), "tokenizer.model": bytes.Repeat([]byte("token"), 5000)}})
	w, log = newWorld(t, m, hubtest.WithLFSThreshold(20_000)), new(bytes.Buffer)
	cache := t.TempDir()
	c := w.client(t, func(o *hub.Options) { o.CacheDir = cache })
	blobs, refs := fillCache(t, c, cache)
	w.ResetLog()
	w.change = append(w.change, func(o *pipeline.Options) {
		c := w.client(t, func(o *hub.Options) { o.CacheDir, o.Log = cache, slog.New(slog.NewTextHandler(log, nil)) })
		src, known, err := model.OpenHub(t.Context(), c, sourceRepo, "", w.plan)
		if err != nil {
			t.Fatal(err)
		}
		o.Source, o.Model = src, known
		if keep {
			o.Source = model.KeepWeights(src)
		}
	})
	return w, log, func(path string, change func([]byte) []byte) string {
		copied := filepath.Join(blobs, refs[path].SHA256+refs[path].BlobID)
		writeFile(t, copied, change(readFile(t, copied)))
		return copied
	}
}

// TestDamagedCache: whatever is wrong with a copy in the shared cache, the log tells, the bytes come from the hub, and the
// result is the same. Where the cache is kept, the copy of a weight file is right again afterwards.
func TestDamagedCache(t *testing.T) {
	t.Parallel()
	last := func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
	half := func(b []byte) []byte { return b[:len(b)/2] }
	zero := func(b []byte) []byte { clear(b[:4096]); return b }
	const shard, token = "model-00002-of-00004.safetensors", "tokenizer.model"
	w, _, _ := cacheWorld(t, false)
	w.mustConvert(t)
	want := w.target()
	for _, tt := range []struct {
		name, path string
		change     func([]byte) []byte
		keep       bool
	}{
		{"a bit of the weights, kept", shard, last, true},
		{"a bit of the weights, only read", shard, last, false},
		{"short weights, kept", shard, half, true},
		{"short weights, only read", shard, half, false},
		{"the header, kept", shard, zero, true},
		{"the header, only read", shard, zero, false},
		{"a large copied file", token, last, true},
		{"a small copied file", "generation_config.json", last, true},
		{"the config", "config.json", last, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, log, spoil := cacheWorld(t, tt.keep)
			var good []byte
			copied := spoil(tt.path, func(b []byte) []byte {
				good = bytes.Clone(b)
				return tt.change(b)
			})
			w.mustConvert(t)
			sameFiles(t, w.target(), want)
			checkPublished(t, w)
			if n := strings.Count(log.String(), "damaged"); n != 1 || !strings.Contains(log.String(), tt.path) {
				t.Errorf("told %d times: %s", n, log)
			}
			right := bytes.Equal(readFile(t, copied), good)
			if repairs := tt.keep && tt.path == shard; right != repairs {
				t.Errorf("the copy is right: %v", right)
			}
		})
	}
}

// TestVerifyWithDamagedCache: a DF11 model is not blamed for a copy of its original that is damaged, whether a weight shows that or
// the hash of the file, which ends later.
func TestVerifyWithDamagedCache(t *testing.T) {
	for name, at := range map[string]func(size int) int{
		"model-00001-of-00004.safetensors": func(size int) int { return size / 3 },
		"model-00002-of-00004.safetensors": func(size int) int { return size - 1 },
	} {
		w, log, spoil := cacheWorld(t, false)
		w.mustConvert(t)
		spoil(name, func(b []byte) []byte { b[at(len(b))] ^= 1; return b })
		var o pipeline.Options
		for _, f := range w.change {
			f(&o)
		}
		p, err := plan.New(o.Model.Listing, w.plan)
		if err != nil {
			t.Fatal(err)
		}
		d, err := model.OpenDF11Hub(t.Context(), w.client(t), targetRepo, "")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		r, err := proof.Verify(t.Context(), proof.Options{
			DF11: d, Source: o.Source, Model: o.Model, Plan: p, Level: proof.LevelFull, WorkDir: t.TempDir()})
		if err != nil || !r.OK || strings.Count(log.String(), "damaged") != 1 {
			t.Errorf("%s: %+v, %v; log %s", name, r, err, log)
		}
	}
}

// TestKilledCacheGoesOn: a download into the shared cache that was stopped goes on where it was.
func TestKilledCacheGoesOn(t *testing.T) {
	m := hubtest.NewLlama(2, hubtest.ModelOptions{Hidden: 256, Vocab: 512, Layers: 2, Extra: noPicture})
	want := reference(t, m)
	w, cache := newWorld(t, m), t.TempDir()
	w.hub = append(w.hub, func(o *hub.Options) { o.CacheDir = cache })
	w.change = append(w.change, func(o *pipeline.Options) { o.Source = model.KeepWeights(o.Source) })
	interrupted(t, w, t.TempDir(), func(stop func()) {
		w.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Path: "/repos/*", Nth: 60, Action: func(x *hubtest.Exchange) { stop(); hubtest.Reset()(x) }})
	})
	parts, err := filepath.Glob(filepath.Join(cache, "*", "blobs", "*.df11-part"))
	if err != nil || len(parts) != 1 {
		t.Fatal(parts, err)
	}
	st, err := os.Stat(parts[0])
	if err != nil || st.Size() < m.Size()/4 {
		t.Fatalf("only %d bytes of %d are there, %v", st.Size(), m.Size(), err)
	}
	w.ResetLog()
	w.mustConvert(t)
	sameFiles(t, w.target(), want)
	if read := w.sourceBytes(); read > m.Size()-st.Size()+300_000 { // headers are read before
		t.Errorf("%d bytes were read, with %d of %d there", read, st.Size(), m.Size())
	}
}

// oneByOne counts how many files are streamed at once.
type oneByOne struct {
	model.Source
	open, most atomic.Int64
}

func (s *oneByOne) Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error) {
	r, err := s.Source.Stream(ctx, file, off, end)
	if err != nil {
		return nil, err
	}
	s.most.Store(max(s.most.Load(), s.open.Add(1)))
	return streamEnd{r, func() { s.open.Add(-1) }}, nil
}

// streamEnd is a stream whose end is noted.
type streamEnd struct {
	io.ReadCloser
	end func()
}

func (s streamEnd) Close() error {
	s.end()
	return s.ReadCloser.Close()
}

// TestFilesOfAHubAreStreamedOneByOne: the budget of spools holds what fills up at once when files come in order, and no more.
func TestFilesOfAHubAreStreamedOneByOne(t *testing.T) {
	w, src := newWorld(t, small()), new(oneByOne)
	w.mustConvert(t, func(o *pipeline.Options) { src.Source, o.Source, o.Workers = o.Source, src, 8 })
	if n := src.most.Load(); n != 1 {
		t.Errorf("%d files at once", n)
	}
}
