package hub

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	gohf "github.com/gomlx/go-huggingface/hub"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/names"
)

// sharedCache is the folder of downloaded files that the Python client uses, too. A repo's files
// lie in its folder:
//
//	models--ns--name/refs/main                   the commit that a branch had
//	models--ns--name/snapshots/COMMIT/PATH       a link to the blob, or the file itself where links cannot be made
//	models--ns--name/blobs/ETAG                  the bytes, named by the hash that the hub publishes for them
//	blobs/XX/XETHASH                             the bytes of a blob that is a link to here: huggingface_hub from 1.32 on
//	                                             stores what several repos hold once, under another hash
type sharedCache struct {
	t       *wire.Transport // for its log and errors
	dir     string          // "" for none
	damaged sync.Map        // paths of files that differ from the published ones
}

// folder returns the folder of a repo.
func (s *sharedCache) folder(repo string) string {
	parts := append([]string{string(gohf.RepoTypeModel)}, strings.Split(repo, "/")...)
	return filepath.Join(s.dir, strings.Join(parts, gohf.RepoIdSeparator))
}

// commit resolves a revision by the cache's refs.
func (s *sharedCache) commit(repo, rev string) (string, bool) {
	if names.IsCommit(rev) {
		return rev, true
	}
	if s.dir == "" || checkPath(rev) != nil {
		return "", false
	}
	data, err := disk.Read(filepath.Join(s.folder(repo), "refs", filepath.FromSlash(rev)),
		4096)
	commit := strings.TrimSpace(string(data))
	return commit, err == nil && names.IsCommit(commit)
}

// snapshot returns the folder of a commit.
func (s *sharedCache) snapshot(repo, commit string) string {
	return filepath.Join(s.folder(repo), "snapshots", commit)
}

// find returns the path of a file's copy: among the repo's blobs, by its hash, or on systems without
// links in the snapshot of its commit. It doesn't read the content. A link in a snapshot only names
// a hash, so it doesn't matter where it leads.
func (s *sharedCache) find(f FileRef) (path string, ok bool) {
	if s.dir == "" || f.NoCache || checkSource(f.Repo, f.Commit, f.Path) != nil {
		return "", false
	}
	if isETag(f.hash()) {
		path = filepath.Join(s.folder(f.Repo), "blobs", f.hash())
		if info, err := os.Stat(path); err == nil && s.trusts(path, info, f) {
			return path, true
		}
	}
	path = filepath.Join(s.snapshot(f.Repo, f.Commit), filepath.FromSlash(f.Path))
	info, err := os.Lstat(path)
	return path, err == nil && s.trusts(path, info, f)
}

// trusts reports whether a copy may be the file, without reading it.
func (s *sharedCache) trusts(path string, info fs.FileInfo, f FileRef) bool {
	if _, damaged := s.damaged.Load(path); damaged || !info.Mode().IsRegular() {
		return false
	}
	if (f.hash() != "" || f.Size > 0) && info.Size() != f.Size {
		s.discard(path, f, fmt.Sprintf("it has %d bytes, not %d as published", info.Size(), f.Size))
		return false
	}
	return true
}

// discard marks a file of the cache that must not be used, and logs that once.
func (s *sharedCache) discard(path string, f FileRef, why string) {
	if _, known := s.damaged.LoadOrStore(path, true); !known {
		s.t.Opt.Log.Warn("the shared cache's copy is damaged and is not used", "file", f.String(),
			"copy", path, "why", why)
	}
}

// open opens a file's copy. A copy that vanished since it was found is no error, because the hub has
// the file.
func (s *sharedCache) open(f FileRef) (file *os.File, ok bool) {
	path, ok := s.find(f)
	if !ok {
		return nil, false
	}
	file, err := os.Open(path)
	return file, err == nil
}

// readSmall returns a small file from the cache if its bytes have its hash. A file without a hash
// counts only offline, when there's nothing better.
func (s *sharedCache) readSmall(f FileRef, maxBytes int64) ([]byte, bool) {
	file, ok := s.open(f)
	if !ok {
		return nil, false
	}
	defer file.Close()
	data, err := disk.ReadAll(file, maxBytes)
	if err != nil {
		return nil, false
	}
	if f.hash() == "" {
		return data, s.t.Opt.Offline
	}
	if got := hashLike(f.hash(), data); got != f.hash() {
		s.discard(file.Name(), f, "its hash is "+got+", published is "+f.hash())
		return nil, false
	}
	return data, true
}

// info describes a snapshot of the cache. It knows only the files that were downloaded; the plan
// notices missing shards.
func (s *sharedCache) info(repo, revision string) (*RepoInfo, error) {
	op := "read model info of " + repo
	commit, ok := s.commit(repo, revision)
	if !ok {
		return nil, s.t.Errorf(op, wire.ErrOffline, "revision %s is not in the cache", revision)
	}
	root := s.snapshot(repo, commit)
	info := &RepoInfo{ID: repo, SHA: commit}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return info.list(root, path)
	})
	if err != nil || len(info.Files) == 0 {
		return nil, s.t.Errorf(op, wire.ErrOffline, "commit %s is not in the cache", commit)
	}
	return info, nil
}

// list adds one file of a snapshot. It leaves out a link to anything but a blob.
func (i *RepoInfo) list(root, path string) error {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	f := FileInfo{Path: filepath.ToSlash(rel)}
	if err := checkPath(f.Path); err != nil {
		return err
	}
	if link, err := os.Readlink(path); err == nil {
		switch etag := filepath.Base(link); {
		case names.IsSHA256(etag):
			f.SHA256 = etag
		case names.IsCommit(etag):
			f.BlobID = etag
		default:
			return nil
		}
	}
	if stat, err := os.Stat(path); err == nil && stat.Mode().IsRegular() {
		f.Size = stat.Size()
		i.Files = append(i.Files, f)
	}
	return nil
}
