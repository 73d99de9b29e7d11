package hub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// cacheRepo writes a snapshot as the Python client does.
func cacheRepo(t *testing.T, files map[string]string) (dir string, folder string) {
	t.Helper()
	dir = t.TempDir()
	folder = filepath.Join(dir, "models--a--b")
	for name, content := range files {
		hash := gitBlobHash([]byte(content))
		if filepath.Ext(name) == ".safetensors" {
			hash = world.Sum([]byte(content))
		}
		world.Write(t, filepath.Join(folder, "blobs", hash), content)
		link := filepath.Join(folder, "snapshots", testCommit, name)
		must(t, os.MkdirAll(filepath.Dir(link), 0o755))
		target, err := filepath.Rel(filepath.Dir(link), filepath.Join(folder, "blobs", hash))
		must(t, err)
		must(t, os.Symlink(target, link))
	}
	world.Write(t, filepath.Join(folder, "refs", "main"), testCommit)
	return dir, folder
}

// shareBlobs moves the weights of cacheRepo's repo into the store that all repos of a cache share,
// as huggingface_hub does from 1.32 on. It returns the path of a blob there.
func shareBlobs(t *testing.T, dir string) (place func(etag string) string) {
	t.Helper()
	place = func(etag string) string {
		// its own hash, which the hub publishes only in X-Xet-Hash
		xet := world.Sum([]byte(etag))
		return filepath.Join(dir, "blobs", xet[:2], xet)
	}
	blobs, err := filepath.Glob(filepath.Join(dir, "models--a--b", "blobs", strings.Repeat("?", 64)))
	if err != nil || len(blobs) == 0 {
		t.Fatal(blobs, err)
	}
	for _, blob := range blobs {
		to := place(filepath.Base(blob))
		world.Write(t, to+".refs", blob)
		must(t, errors.Join(os.Rename(blob, to), os.Symlink(to, blob)))
	}
	return place
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
	if !ok || ref.SHA256 != world.Sum([]byte("0123456789")) || ref.Size != 10 {
		t.Errorf("%+v", ref)
	}
	small, _ := info.File("config.json")
	if data, err := c.ReadFile(t.Context(), small, 10); err != nil || string(data) != "{}" {
		t.Error(string(data), err)
	}
	if data, err := c.ReadRange(t.Context(), ref, 2, 5); err != nil || string(data) != "23456" {
		t.Error(string(data), err)
	}
	s, err := c.Stream(t.Context(), ref, 1, 10)
	must(t, err)
	defer s.Close()
	buf := make([]byte, 20)
	if n, _ := s.Read(buf); string(buf[:n]) != "123456789" {
		t.Errorf("got %q", buf[:n])
	}
	if w.Count() != 0 {
		t.Errorf("%d requests", w.Count())
	}
	if _, err := c.ReadFile(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: "none.json"}, 10); !errors.Is(err, ErrOffline) {
		t.Error(err)
	}
	if _, err := c.Info(t.Context(), "a/b", "v2"); !errors.Is(err, ErrOffline) {
		t.Error(err)
	}
	if _, err := c.Info(t.Context(), "a/none", ""); !errors.Is(err, ErrOffline) {
		t.Error(err)
	}
	if err := c.Missing("a/b", testCommit, []string{"x"}); !errors.Is(err, ErrOffline) || !isA[*Error](err) {
		t.Error(err)
	}
}

// TestCacheFindsCopiesByTheirHash checks that a copy is found by its hash among its repo's blobs,
// or on systems without links in its snapshot. It's never a link without a hash.
func TestCacheFindsCopiesByTheirHash(t *testing.T) {
	const content = "0123456789"
	etag := world.Sum([]byte(content))
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
		shared bool // the bytes are in the store that all repos share
		spoil  func(link, blob, stored string) error
		finds  []FileRef
		misses []FileRef
	}{
		{"as Python writes it", false, nil, []FileRef{known}, []FileRef{bare,
			change(func(f *FileRef) { f.SHA256 = shaA }), change(func(f *FileRef) { f.NoCache = true }),
			change(func(f *FileRef) { f.Path = "../../blobs/" + etag }), change(func(f *FileRef) { f.Commit, f.SHA256 = "../../..", "" }),
			change(func(f *FileRef) { f.Path, f.SHA256, f.Size = "snapshots", "", 0 })}},
		{"only the blob", false, func(link, _, _ string) error { return os.Remove(link) }, []FileRef{known}, []FileRef{bare}},
		{"plain file where links are not used", false, func(link, blob, _ string) error { return os.Rename(blob, link) }, []FileRef{known, bare}, nil},
		{"other size", false, func(_, blob, _ string) error { return os.Truncate(blob, 4) }, nil, []FileRef{known, bare}},
		{"as newer Python writes it", true, nil, []FileRef{known}, []FileRef{bare}},
		{"nothing there", true, func(_, _, stored string) error { return os.Remove(stored) }, nil, []FileRef{known, bare}},
		{"a folder", true, func(_, _, stored string) error { return errors.Join(os.Remove(stored), os.Mkdir(stored, 0o755)) }, nil, []FileRef{known, bare}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, folder := cacheRepo(t, map[string]string{"m.safetensors": content})
			link, blob := filepath.Join(folder, "snapshots", testCommit, "m.safetensors"), filepath.Join(folder, "blobs", etag)
			stored := blob
			if tt.shared {
				stored = shareBlobs(t, dir)(etag)
			}
			if tt.spoil != nil {
				must(t, tt.spoil(link, blob, stored))
			}
			for want, refs := range map[bool][]FileRef{true: tt.finds, false: tt.misses} {
				for _, ref := range refs {
					c, _ := cachedClient(t, dir)
					if copied, ok := c.cache.find(ref); ok != want {
						t.Errorf("%+v: got %q, %v", ref, copied, ok)
					}
				}
			}
		})
	}
}

// TestCachedWeightsNeedAHash checks that an offline run takes weights for a repo's only if the
// cache says which hash they have there. A plain file in a snapshot may be anything.
func TestCachedWeightsNeedAHash(t *testing.T) {
	for _, listed := range []bool{false, true} {
		const weights = "0123456789"
		dir, folder := cacheRepo(t, map[string]string{"config.json": "{}", "m.safetensors": weights})
		etag := world.Sum([]byte(weights))
		link := filepath.Join(folder, "snapshots", testCommit, "m.safetensors")
		must(t, os.Rename(filepath.Join(folder, "blobs", etag), link))
		if listed {
			world.Write(t, filepath.Join(folder, "trees", testCommit+".json"), fmt.Appendf(nil,
				`{"format_version": 1, "files": {"m.safetensors": {"size": 130, "blob_id": %q, "lfs_sha256": %q, "lfs_size": 10}}}`,
				strings.Repeat("a", 40), etag))
		}
		c, _ := cachedClient(t, dir)
		_, err := c.Info(t.Context(), "a/b", "")
		if listed {
			must(t, err)
		} else if !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), "m.safetensors") {
			t.Error(err)
		}
	}
}

func TestCachedSmallFileIsHashed(t *testing.T) {
	dir, folder := cacheRepo(t, map[string]string{"config.json": "{}"})
	world.Write(t, filepath.Join(folder, "blobs", gitBlobHash([]byte("{}"))), "[]")
	c, _ := cachedClient(t, dir)
	ref := FileRef{Repo: "a/b", Commit: testCommit, Path: "config.json", Size: 2, BlobID: gitBlobHash([]byte("{}"))}
	if data, err := c.ReadFile(t.Context(), ref, 10); !errors.Is(err, ErrOffline) {
		t.Errorf("a spoilt blob was served: %q, %v", data, err)
	}
}
