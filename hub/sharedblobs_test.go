package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shareBlobs moves the weights of the repo that cacheRepo wrote into the store that all repos of a cache share, as
// huggingface_hub does from 1.32 on, and gives the place of a blob there.
func shareBlobs(t *testing.T, dir string) (place func(etag string) string) {
	t.Helper()
	place = func(etag string) string {
		xet := sha([]byte(etag)) // a hash of its own, which the hub publishes nowhere but in X-Xet-Hash
		return filepath.Join(dir, "blobs", xet[:2], xet)
	}
	write(t, filepath.Join(dir, "blobs", ".huggingface-shared-blobs"), "1\n")
	blobs := filepath.Join(dir, "models--a--b", "blobs")
	entries, err := os.ReadDir(blobs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !isSHA256(e.Name()) {
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

// TestCacheNeverFollowsLinksElsewhere: of the store that all repos share, only regular files in their places are taken, and
// the hash that a file is said to have is that of the repo's link, never the store's.
func TestCacheNeverFollowsLinksElsewhere(t *testing.T) {
	content := "0123456789"
	etag := sha([]byte(content))
	relink := func(t *testing.T, name, target string) {
		t.Helper()
		os.Remove(name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, dir, blob, stored string)
		ok    bool
	}{
		{"as Python writes it", func(*testing.T, string, string, string) {}, true},
		{"an absolute link", func(t *testing.T, _, blob, stored string) { relink(t, blob, stored) }, true},
		{"nothing there", func(_ *testing.T, _, _, stored string) { os.Remove(stored) }, false},
		{"other size", func(t *testing.T, _, _, stored string) { write(t, stored, "0123") }, false},
		{"a folder", func(t *testing.T, _, _, stored string) { os.Remove(stored); os.Mkdir(stored, 0o755) }, false},
		{"a link out of the store", func(t *testing.T, _, _, stored string) {
			outside := filepath.Join(t.TempDir(), filepath.Base(stored))
			write(t, outside, content)
			relink(t, stored, outside)
		}, false},
		{"a link out of the cache", func(t *testing.T, _, blob, _ string) {
			outside := filepath.Join(t.TempDir(), "blobs", etag[:2], etag)
			write(t, outside, content)
			relink(t, blob, outside)
		}, false},
		{"the wrong prefix", func(t *testing.T, dir, blob, stored string) {
			to := filepath.Join(dir, "blobs", "zz", filepath.Base(stored))
			write(t, to, content)
			relink(t, blob, to)
		}, false},
		{"a prefix of another hash", func(t *testing.T, dir, blob, _ string) {
			to := filepath.Join(dir, "blobs", "00", strings.Repeat("f", 64))
			write(t, to, content)
			relink(t, blob, to)
		}, false},
		{"a name that is no hash", func(t *testing.T, dir, blob, _ string) {
			to := filepath.Join(dir, "blobs", "00", "token")
			write(t, to, content)
			relink(t, blob, to)
		}, false},
		{"one folder deeper", func(t *testing.T, dir, blob, stored string) {
			to := filepath.Join(dir, "blobs", "00", "11", filepath.Base(stored))
			write(t, to, content)
			relink(t, blob, to)
		}, false},
		{"blobs of another repo", func(t *testing.T, dir, blob, _ string) {
			to := filepath.Join(dir, "models--c--d", "blobs", etag)
			write(t, to, content)
			relink(t, blob, to)
		}, false},
		{"a snapshot that links to the store", func(t *testing.T, dir, blob, stored string) {
			os.Remove(blob)
			relink(t, filepath.Join(dir, "models--a--b", "snapshots", testCommit, "m.safetensors"), stored)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, folder := cacheRepo(t, map[string]string{"m.safetensors": content})
			stored := shareBlobs(t, dir)(etag)
			tt.spoil(t, dir, filepath.Join(folder, "blobs", etag), stored)
			for _, f := range []FileRef{
				{Repo: "a/b", Commit: testCommit, Path: "m.safetensors", Size: 10, SHA256: etag},
				{Repo: "a/b", Commit: testCommit, Path: "m.safetensors", Size: 10},
			} {
				c, _ := cachedClient(t, dir)
				if copied, ok := c.cache.find(f); ok != tt.ok {
					t.Errorf("got %+v, %v", copied, ok)
				}
			}
			c, _ := cachedClient(t, dir)
			other := FileRef{Repo: "a/b", Commit: testCommit, Path: "m.safetensors", Size: 10, SHA256: filepath.Base(stored)}
			if copied, ok := c.cache.find(other); ok {
				t.Errorf("%+v is taken by the name that the store gives it", copied)
			}
			if info, err := c.Info(t.Context(), "a/b", ""); tt.ok && err != nil || err == nil && info.Files[0].SHA256 != etag {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
}
