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
	"github.com/df11-convert/df11-convert/internal/names"
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

// shareBlobs moves the weights of cacheRepo's repo into the store that all repos of a cache share,
// as huggingface_hub does from 1.32 on. It returns the path of a blob there.
func shareBlobs(t *testing.T, dir string) (place func(etag string) string) {
	t.Helper()
	place = func(etag string) string {
		// its own hash, which the hub publishes only in X-Xet-Hash
		xet := sha([]byte(etag))
		return filepath.Join(dir, "blobs", xet[:2], xet)
	}
	write(t, filepath.Join(dir, "blobs", ".huggingface-shared-blobs"), "1\n")
	blobs := filepath.Join(dir, "models--a--b", "blobs")
	entries, err := os.ReadDir(blobs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !names.IsSHA256(e.Name()) {
			continue
		}
		to := place(e.Name())
		write(t, to+".refs", "models--a--b/blobs/"+e.Name()+"\n")
		if err := os.Rename(filepath.Join(blobs, e.Name()), to); err != nil {
			t.Fatal(err)
		}
		target, err := filepath.Rel(blobs, to)
		if err == nil {
			err = os.Symlink(target, filepath.Join(blobs, e.Name()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return place
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

// cachedClient is offline and has only the cache.
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

// cachedFile is a file of ten bytes in the cache: in its snapshot, among its repo's blobs, and
// where its bytes are.
type cachedFile struct {
	t                               *testing.T
	dir, folder, link, blob, stored string
}

func (f cachedFile) move(to string, from string) {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.RemoveAll(to), os.Rename(from, to)); err != nil {
		f.t.Fatal(err)
	}
}

func (f cachedFile) relink(name, target string) {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.RemoveAll(name), os.Symlink(target, name)); err != nil {
		f.t.Fatal(err)
	}
}

// elsewhere moves the bytes, and points the repo's blob there.
func (f cachedFile) elsewhere(place ...string) {
	to := filepath.Join(place...)
	f.move(to, f.stored)
	f.relink(f.blob, to)
}

// TestCacheNeverFollowsLinksElsewhere checks that a copy comes from its repo's blobs, or on systems
// without links from its snapshot. From the store that all repos share, only regular files at their
// usual paths count. A file's hash is always that of the repo's link, never the store's.
func TestCacheNeverFollowsLinksElsewhere(t *testing.T) {
	const content = "0123456789"
	etag := sha([]byte(content))
	known := FileRef{Repo: "a/b", Commit: testCommit, Path: "m.safetensors", Size: 10, SHA256: etag}
	bare := known
	bare.SHA256 = ""
	change := func(f func(*FileRef)) FileRef {
		ref := known
		f(&ref)
		return ref
	}
	for _, tt := range []struct {
		name   string
		shared bool // the bytes are in the shared store
		spoil  func(f cachedFile)
		finds  []FileRef
		misses []FileRef
	}{
		{"as Python writes it", false, func(cachedFile) {}, []FileRef{known, bare}, []FileRef{
			change(func(f *FileRef) { f.SHA256 = shaA }), change(func(f *FileRef) { f.NoCache = true }),
			change(func(f *FileRef) { f.Path = "../../blobs/" + etag }), change(func(f *FileRef) { f.Commit, f.SHA256 = "../../..", "" }),
			change(func(f *FileRef) { f.Path, f.SHA256, f.Size = "snapshots", "", 0 })}},
		{"only the blob", false, func(f cachedFile) { os.Remove(f.link) }, []FileRef{known}, []FileRef{bare}},
		{"plain file where links are not used", false, func(f cachedFile) { f.move(f.link, f.blob) }, []FileRef{known, bare}, nil},
		{"other size", false, func(f cachedFile) { write(t, f.blob, "0123") }, nil, []FileRef{known, bare}},
		{"snapshot out of the cache", false, func(f cachedFile) {
			outside := filepath.Join(t.TempDir(), "x")
			f.move(outside, f.blob)
			f.relink(f.link, outside)
		}, nil, []FileRef{known, bare}},
		{"link to a blob of another name", false, func(f cachedFile) {
			f.move(filepath.Join(f.folder, "blobs", "cdn-etag"), f.blob)
			f.relink(f.link, "../../blobs/cdn-etag")
		}, nil, []FileRef{known, bare}},

		{"as newer Python writes it", true, func(cachedFile) {}, []FileRef{known, bare}, nil},
		{"an absolute link", true, func(f cachedFile) { f.relink(f.blob, f.stored) }, []FileRef{known, bare}, nil},
		{"nothing there", true, func(f cachedFile) { os.Remove(f.stored) }, nil, []FileRef{known, bare}},
		{"other size in the store", true, func(f cachedFile) { write(t, f.stored, "0123") }, nil, []FileRef{known, bare}},
		{"a folder", true, func(f cachedFile) { os.Remove(f.stored); os.Mkdir(f.stored, 0o755) }, nil, []FileRef{known, bare}},
		{"a link out of the store", true, func(f cachedFile) {
			outside := filepath.Join(t.TempDir(), filepath.Base(f.stored))
			f.move(outside, f.stored)
			f.relink(f.stored, outside)
		}, nil, []FileRef{known, bare}},
		{"a link out of the cache", true, func(f cachedFile) { f.elsewhere(t.TempDir(), "blobs", etag[:2], etag) }, nil, []FileRef{known, bare}},
		{"the wrong prefix", true, func(f cachedFile) { f.elsewhere(f.dir, "blobs", "zz", filepath.Base(f.stored)) }, nil, []FileRef{known, bare}},
		{"a prefix of another hash", true, func(f cachedFile) { f.elsewhere(f.dir, "blobs", "00", strings.Repeat("f", 64)) }, nil, []FileRef{known, bare}},
		{"a name that is no hash", true, func(f cachedFile) { f.elsewhere(f.dir, "blobs", "00", "token") }, nil, []FileRef{known, bare}},
		{"one folder deeper", true, func(f cachedFile) { f.elsewhere(f.dir, "blobs", "00", "11", filepath.Base(f.stored)) }, nil, []FileRef{known, bare}},
		{"blobs of another repo", true, func(f cachedFile) { f.elsewhere(f.dir, "models--c--d", "blobs", etag) }, nil, []FileRef{known, bare}},
		{"a snapshot that links to the store", true, func(f cachedFile) {
			os.Remove(f.blob)
			f.relink(f.link, f.stored)
		}, nil, []FileRef{known, bare}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, folder := cacheRepo(t, map[string]string{"m.safetensors": content})
			f := cachedFile{t, dir, folder, filepath.Join(folder, "snapshots", testCommit, "m.safetensors"), filepath.Join(folder, "blobs", etag), ""}
			if f.stored = f.blob; tt.shared {
				f.stored = shareBlobs(t, dir)(etag)
			}
			tt.spoil(f)
			if tt.shared { // the store's name for it
				tt.misses = append(tt.misses, change(func(f *FileRef) { f.SHA256 = sha([]byte(etag)) }))
			}
			for want, refs := range map[bool][]FileRef{true: tt.finds, false: tt.misses} {
				for _, ref := range refs {
					c, _ := cachedClient(t, dir)
					if copied, ok := c.cache.find(ref); ok != want {
						t.Errorf("%+v: got %+v, %v", ref, copied, ok)
					}
				}
			}
			c, _ := cachedClient(t, dir)
			info, err := c.Info(t.Context(), "a/b", "")
			if len(tt.finds) == 2 && err != nil || err == nil && info.Files[0].SHA256 != etag && !strings.HasPrefix(tt.name, "plain") {
				t.Errorf("%+v, %v", info, err)
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

// TestDamagedCopyIsNotUsed checks that a copy that differs from the published file is reported
// once, read from the hub instead, and left alone, with and without links.
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
	_, listed := c.cache.find(h.ref()) // a copy of another size isn't even found
	for try := range 2 {
		if damaged := c.CheckCached(t.Context(), h.ref()); damaged != (listed && try == 0) {
			t.Fatalf("damaged: %v", damaged)
		}
		if err := streamAll(t, c, h); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "damaged"); n != 1 {
		t.Errorf("reported %d times: %s", n, &log)
	}
}
