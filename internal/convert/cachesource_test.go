package convert_test

import (
	"bytes"
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// cacheWorld is a world whose source client uses a full shared cache. spoil changes one of its
// files.
func cacheWorld(t *testing.T) (w *world, log *bytes.Buffer, spoil func(path string, change func([]byte) []byte) (copied string)) {
	t.Helper()
	m := hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 3, ShardBytes: 30_000, Extra: map[string][]byte{
		names.Chart: hubtest.OwnPicture[names.Chart], "tokenizer.model": bytes.Repeat([]byte("token"), 5000)}})
	w, log = newWorld(t, m, hubtest.WithLFSThreshold(20_000)), new(bytes.Buffer)
	cache := t.TempDir()
	files := w.Files(sourceRepo, "main")
	writeCache(t, cache, w.Head(sourceRepo, "main"), files, m)
	w.change = append(w.change, func(o *convert.Options) {
		c := w.client(t, func(o *hub.Options) { o.CacheDir, o.Log = cache, slog.New(slog.NewTextHandler(log, nil)) })
		src, known, err := model.OpenHub(t.Context(), c, sourceRepo, "", w.plan, 0)
		shared.Must(t, err)
		o.Source, o.Model = src, known
	})
	return w, log, func(path string, change func([]byte) []byte) string {
		copied := filepath.Join(cache, "models--org--model", "blobs", cmp.Or(files[path].SHA256, files[path].BlobID))
		shared.Write(t, copied, change(shared.Read(t, copied)))
		return copied
	}
}

// TestDamagedCache checks that a faulty copy in the shared cache is logged and stays as it is. The
// bytes come from the hub, and the result is the same.
func TestDamagedCache(t *testing.T) {
	t.Parallel()
	last := func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
	half := func(b []byte) []byte { return b[:len(b)/2] }
	zero := func(b []byte) []byte { clear(b[:4096]); return b }
	const shard, token = "model-00002-of-00004.safetensors", "tokenizer.model"
	w, _, _ := cacheWorld(t)
	w.mustConvert(t)
	want := w.target()
	for _, tt := range []struct {
		name, path string
		change     func([]byte) []byte
	}{
		{"a bit of the weights", shard, last},
		{"short weights", shard, half},
		{"the header", shard, zero},
		{"a large copied file", token, last},
		{"a small copied file", "generation_config.json", last},
		{"the config", "config.json", last},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, log, spoil := cacheWorld(t)
			copied := spoil(tt.path, tt.change)
			spoilt := shared.Read(t, copied)
			w.mustConvert(t)
			sameFiles(t, w.target(), want)
			checkPublished(t, w)
			if n := strings.Count(log.String(), "damaged"); n != 1 || !strings.Contains(log.String(), tt.path) {
				t.Errorf("reported %d times: %s", n, log)
			}
			if !bytes.Equal(shared.Read(t, copied), spoilt) {
				t.Error("the copy was touched")
			}
		})
	}
}

// TestVerifyWithDamagedCache checks that verify doesn't blame a DF11 model, published or in a
// folder, for a damaged copy of its original, whether a weight or only the file's hash shows the
// damage.
func TestVerifyWithDamagedCache(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		at      func(size int) int
		isLocal bool
	}{
		{"model-00001-of-00004.safetensors", func(size int) int { return size / 3 }, false},
		{"model-00002-of-00004.safetensors", func(size int) int { return size - 1 }, false},
		{"model-00001-of-00004.safetensors", func(size int) int { return size / 3 }, true},
	} {
		w, log, spoil := cacheWorld(t)
		out := t.TempDir()
		w.mustConvert(t, func(o *convert.Options) { o.OutDir = out })
		spoil(tt.name, func(b []byte) []byte { b[tt.at(len(b))] ^= 1; return b })
		var o convert.Options
		for _, f := range w.change {
			f(&o)
		}
		p, err := plan.New(t.Context(), o.Model.Listing, w.plan)
		shared.Must(t, err)
		var d *model.DF11
		if tt.isLocal {
			d, err = model.OpenDF11Local(t.Context(), out, 0)
		} else {
			d, err = model.OpenDF11Hub(t.Context(), w.client(t), targetRepo, "", 0, 0)
		}
		shared.Must(t, err)
		defer d.Close()
		r, err := convert.Verify(t.Context(), convert.VerifyOptions{
			Pair: back.Pair{DF11: d, Source: o.Source, Model: o.Model, Plan: p}, Level: convert.LevelFull, WorkDir: t.TempDir()})
		if err != nil || !r.OK || strings.Count(log.String(), "damaged") != 1 {
			t.Errorf("%s, local %v: %+v, %v; log %s", tt.name, tt.isLocal, r, err, log)
		}
	}
}

// TestCacheSnapshot checks that files behind symbolic links in the shared cache are read there and
// not fetched. The path of a snapshot folder is a source, too.
func TestCacheSnapshot(t *testing.T) {
	t.Parallel()
	m := small()
	w := newWorld(t, m)
	w.mustConvert(t)
	want := w.target()
	cache := t.TempDir()
	snapshot := writeCache(t, cache, w.Head(sourceRepo, "main"), w.Files(sourceRepo, "main"), m)
	w2 := newWorld(t, m)
	w2.hub = append(w2.hub, func(o *hub.Options) { o.CacheDir = cache })
	w2.mustConvert(t)
	sameFiles(t, w2.target(), want)
	checkPublished(t, w2)
	if n := w2.sourceBytes(); n > 0 {
		t.Errorf("%d bytes were fetched although the cache has them", n)
	}
	out := t.TempDir()
	if _, err := convertLocal(t, snapshot, out, w.plan, nil); err != nil {
		t.Fatal(err)
	}
	sameFolder(t, out, localResult(t, m))
}

// writeCache lays out a repo as the shared cache does: blobs by hash, snapshots with links to them.
func writeCache(t *testing.T, cache, commit string, files map[string]hubtest.File, m *hubtest.Model) (snapshot string) {
	t.Helper()
	repo := filepath.Join(cache, "models--org--model")
	snapshot = filepath.Join(repo, "snapshots", commit)
	bodies := m.Files()
	for p, f := range files {
		blob := cmp.Or(f.SHA256, f.BlobID)
		shared.Write(t, filepath.Join(repo, "blobs", blob), bodies[p])
		link := filepath.Join(snapshot, filepath.FromSlash(p))
		shared.Must(t, os.MkdirAll(filepath.Dir(link), 0o777))
		to, err := filepath.Rel(filepath.Dir(link), filepath.Join(repo, "blobs", blob))
		shared.Must(t, err)
		shared.Must(t, os.Symlink(to, link))
	}
	shared.Write(t, filepath.Join(repo, "refs", "main"), commit)
	return snapshot
}
