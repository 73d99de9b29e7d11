package hub

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// cacheRepo writes a snapshot as the Python client does.
func cacheRepo(t *testing.T, files map[string]string) (dir string, folder string) {
	t.Helper()
	dir = t.TempDir()
	folder = filepath.Join(dir, "models--a--b")
	for name, content := range files {
		hash := gitBlobHash([]byte(content))
		if filepath.Ext(name) == ".safetensors" {
			hash = sha([]byte(content))
		}
		write(t, filepath.Join(folder, "blobs", hash), content)
		link := filepath.Join(folder, "snapshots", testCommit, name)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		target, err := filepath.Rel(filepath.Dir(link), filepath.Join(folder, "blobs", hash))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(folder, "refs", "main"), testCommit)
	return dir, folder
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// cachedClient is offline: it has nothing but the cache.
func cachedClient(t *testing.T, dir string) (*Client, *scripted) {
	w := script(says(500, ""))
	c, _ := testClient(t, w, func(o *Options) { o.CacheDir, o.Offline = dir, true })
	return c, w
}

func TestCacheServesEverything(t *testing.T) {
	for name, shared := range map[string]bool{"blobs in the repo's folder": false, "blobs that repos share": true} {
		t.Run(name, func(t *testing.T) { cacheServes(t, shared) })
	}
}

func cacheServes(t *testing.T, shared bool) {
	dir, _ := cacheRepo(t, map[string]string{"config.json": "{}", "sub/model.safetensors": "0123456789",
		"README.md": "---\nlicense: mit\n---\n# hi\n"})
	if shared {
		shareBlobs(t, dir)
	}
	c, w := cachedClient(t, dir)
	info, err := c.Info(t.Context(), "a/b", "")
	if err != nil || len(info.Files) != 3 || info.SHA != testCommit {
		t.Fatalf("%+v, %v", info, err)
	}
	ref, ok := info.File("sub/model.safetensors")
	if !ok || ref.SHA256 != sha([]byte("0123456789")) || ref.Size != 10 {
		t.Errorf("%+v", ref)
	}
	if data, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: "config.json"}, 10); err != nil || string(data) != "{}" {
		t.Error(string(data), err)
	}
	if data, err := c.ReadRange(t.Context(), ref, 2, 5); err != nil || string(data) != "23456" {
		t.Error(string(data), err)
	}
	if data, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: ref.Path}, 10); err != nil || string(data) != "0123456789" {
		t.Error(string(data), err)
	}
	if c.CheckCached(t.Context(), ref) {
		t.Error("the copy's own hash is not taken for its hash")
	}
	s, err := c.Stream(t.Context(), ref, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	buf := make([]byte, 20)
	if n, _ := s.Read(buf); string(buf[:n]) != "123456789" {
		t.Errorf("got %q", buf[:n])
	}
	if w.Count() != 0 {
		t.Errorf("%d requests", w.Count())
	}
	if _, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: "none.json"}, 10); !errors.Is(err, wire.ErrOffline) {
		t.Error(err)
	}
	if _, err := c.Info(t.Context(), "a/b", "v2"); !errors.Is(err, wire.ErrOffline) {
		t.Error(err)
	}
	if _, err := c.Info(t.Context(), "a/none", ""); !errors.Is(err, wire.ErrOffline) {
		t.Error(err)
	}
}

func TestCacheTrust(t *testing.T) {
	content := "0123456789"
	ref := FileRef{Repo: "a/b", Commit: testCommit, Path: "m.safetensors", Size: 10, SHA256: sha([]byte(content))}
	link := func(folder string) string { return filepath.Join(folder, "snapshots", testCommit, "m.safetensors") }
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, folder string, ref *FileRef)
		ok    bool
	}{
		{"as Python writes it", func(*testing.T, string, *FileRef) {}, true},
		{"only the blob", func(t *testing.T, folder string, _ *FileRef) { os.Remove(link(folder)) }, true},
		{"plain file where links are not used", func(t *testing.T, folder string, _ *FileRef) {
			os.Remove(link(folder))
			write(t, link(folder), content)
		}, true},
		{"other size", func(t *testing.T, folder string, _ *FileRef) {
			write(t, filepath.Join(folder, "blobs", sha([]byte(content))), "0123")
		}, false},
		{"link out of the cache", func(t *testing.T, folder string, _ *FileRef) {
			outside := filepath.Join(t.TempDir(), "x")
			write(t, outside, content)
			os.RemoveAll(filepath.Join(folder, "blobs"))
			os.Remove(link(folder))
			if err := os.Symlink(outside, link(folder)); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"link to a blob of another name", func(t *testing.T, folder string, _ *FileRef) {
			old := filepath.Join(folder, "blobs", sha([]byte(content)))
			if err := os.Rename(old, filepath.Join(folder, "blobs", "cdn-etag")); err != nil {
				t.Fatal(err)
			}
			os.Remove(link(folder))
			if err := os.Symlink("../../blobs/cdn-etag", link(folder)); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"other hash wanted", func(_ *testing.T, _ string, ref *FileRef) { ref.SHA256 = shaA }, false},
		{"cache not wanted", func(_ *testing.T, _ string, ref *FileRef) { ref.NoCache = true }, false},
		{"hostile path", func(_ *testing.T, _ string, ref *FileRef) { ref.Path = "../../blobs/" + ref.SHA256 }, false},
		{"hostile revision", func(_ *testing.T, _ string, ref *FileRef) { ref.Commit, ref.SHA256 = "../../..", "" }, false},
		{"folder", func(_ *testing.T, _ string, ref *FileRef) { ref.Path, ref.SHA256, ref.Size = "snapshots", "", 0 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, folder := cacheRepo(t, map[string]string{"m.safetensors": content})
			r := ref
			tt.spoil(t, folder, &r)
			c, _ := cachedClient(t, dir)
			if copied, ok := c.cache.find(r); ok != tt.ok {
				t.Errorf("got %+v, %v", copied, ok)
			}
		})
	}
}

func TestCachedSmallFileIsHashed(t *testing.T) {
	dir, folder := cacheRepo(t, map[string]string{"config.json": "{}"})
	write(t, filepath.Join(folder, "blobs", gitBlobHash([]byte("{}"))), "[]")
	c, _ := cachedClient(t, dir)
	if data, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: "config.json"}, 10); !errors.Is(err, wire.ErrOffline) {
		t.Errorf("a spoilt blob was served: %q, %v", data, err)
	}
}

// TestDamagedCopyIsNotUsed: a copy in the cache that is not what was published is told once, read from the hub instead, and left
// alone, whether the cache uses links or not.
func TestDamagedCopyIsNotUsed(t *testing.T) {
	h := newFileHub(t, 1000)
	for name, spoil := range map[string]func(b []byte) []byte{
		"one bit": func(b []byte) []byte { b[500] ^= 1; return b },
		"short":   func(b []byte) []byte { return b[:10] },
		"empty":   func([]byte) []byte { return nil },
	} {
		for _, layout := range []string{"links", "no links", "shared blobs"} {
			t.Run(name+", "+layout, func(t *testing.T) {
				dir, folder := cacheRepo(t, map[string]string{"model.safetensors": string(h.data)})
				if err := os.Rename(filepath.Join(folder, "snapshots", testCommit), filepath.Join(folder, "snapshots", h.commit)); err != nil {
					t.Fatal(err)
				}
				copied := filepath.Join(folder, "blobs", h.ref().SHA256)
				switch link := filepath.Join(folder, "snapshots", h.commit, "model.safetensors"); layout {
				case "no links":
					if err := os.Rename(copied, link); err != nil {
						t.Fatal(err)
					}
					copied = link
				case "shared blobs":
					copied = shareBlobs(t, dir)(h.ref().SHA256)
				}
				spoilt := string(spoil(bytes.Clone(h.data)))
				write(t, copied, spoilt)
				damagedCopy(t, h, dir)
				if left, err := os.ReadFile(copied); err != nil || string(left) != spoilt {
					t.Errorf("the copy was touched: %v", err)
				}
			})
		}
	}
}

func damagedCopy(t *testing.T, h *fileHub, dir string) {
	t.Helper()
	var log bytes.Buffer
	c, _ := testClient(t, h, func(o *Options) {
		o.CacheDir, o.Log = dir, slog.New(slog.NewTextHandler(&log, nil))
	})
	_, listed := c.cache.find(h.ref()) // a copy of another size is not even found
	for try := range 2 {
		if damaged := c.CheckCached(t.Context(), h.ref()); damaged != (listed && try == 0) {
			t.Fatalf("damaged: %v", damaged)
		}
		if err := streamAll(t, c, h); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "damaged"); n != 1 {
		t.Errorf("told %d times: %s", n, &log)
	}
}
