package pipeline_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// layoutModel is one model whose tensors are dealt to files in many ways; its units never change.
func layoutModel(order hubtest.Order, shardBytes int64) *hubtest.Model {
	return hubtest.NewLlama(21, hubtest.ModelOptions{Hidden: 32, Vocab: 128, Layers: 11, Order: order, ShardBytes: shardBytes, Extra: noPicture})
}

// TestSourceLayouts: however the tensors lie in the source files, the output is the same, and every file is streamed once.
func TestSourceLayouts(t *testing.T) {
	t.Parallel()
	want := localResult(t, layoutModel(hubtest.OrderModel, 0))
	for _, tt := range []struct {
		name       string
		order      hubtest.Order
		shardBytes int64
	}{
		{"one file", hubtest.OrderModel, 0},
		{"each tensor in a file of its own", hubtest.OrderModel, 1},
		{"sorted by name", hubtest.OrderName, 60_000},
		{"sorted by name, one file", hubtest.OrderName, 0},
		{"units at both ends", hubtest.OrderScattered, 60_000},
		{"units at both ends, one file", hubtest.OrderScattered, 0},
		{"units in three files", hubtest.OrderModel, 12_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := layoutModel(tt.order, tt.shardBytes)
			w := newWorld(t, m)
			w.mustConvert(t)
			equalsFolder(t, w, want)
			checkPublished(t, w)
			if n := 2 * m.Size(); w.sourceBytes() > n { // once for the headers, which takes small files whole
				t.Errorf("%d bytes were read, want at most %d", w.sourceBytes(), n)
			}
			sameFolder(t, localResult(t, m), want)
		})
	}
}

// TestCacheSnapshot: files that the shared cache holds, behind symbolic links, are read from there and not fetched; a
// snapshot folder is also a source by its path.
func TestCacheSnapshot(t *testing.T) {
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
		blob := f.SHA256
		if blob == "" {
			blob = f.BlobID
		}
		writeFile(t, filepath.Join(repo, "blobs", blob), bodies[p])
		link := filepath.Join(snapshot, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(link), 0o777); err != nil {
			t.Fatal(err)
		}
		to, err := filepath.Rel(filepath.Dir(link), filepath.Join(repo, "blobs", blob))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(repo, "refs", "main"), []byte(commit))
	return snapshot
}
