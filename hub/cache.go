package hub

import (
	"cmp"
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

// A cached file is a copy in the cache.
type cached struct {
	path string // of the bytes, with links resolved
	// the blob's name, a SHA-256 or git blob hash; "" for a file in the snapshot itself
	etag string
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
	if s.dir == "" || !filepath.IsLocal(filepath.FromSlash(rev)) || strings.Contains(rev,
		`\`) {
		return "", false
	}
	data, err := disk.Read(filepath.Join(s.folder(repo), "refs", filepath.FromSlash(rev)),
		4096)
	if err != nil {
		return "", false
	}
	commit := strings.TrimSpace(string(data))
	return commit, names.IsCommit(commit)
}

// find returns a file's copy: in the snapshot of its commit, or by its hash among the blobs. The
// size must match if it's known. A link must end in the repo's own blobs or in the store that all
// repos share, and the blob's name must be the file's hash. find doesn't read the content.
func (s *sharedCache) find(f FileRef) (cached, bool) {
	if s.dir == "" || f.NoCache || checkSource(f.Repo, f.Commit, f.Path) != nil {
		return cached{}, false
	}
	folder, err := filepath.EvalSymlinks(s.folder(f.Repo))
	if err != nil {
		return cached{}, false
	}
	if commit, ok := s.commit(f.Repo, f.Commit); ok {
		name := filepath.Join(folder, "snapshots", commit, filepath.FromSlash(f.Path))
		if found, ok := s.snapshotFile(folder, name); ok && s.trusts(found, f) {
			return found, true
		}
	}
	if isETag(f.hash()) {
		if found, ok := s.blob(folder, f.hash()); ok && s.trusts(found, f) {
			return found, true
		}
	}
	return cached{}, false
}

// snapshotFile returns a file of a snapshot: a link to a blob of its repo, or the file itself on
// systems without links.
func (s *sharedCache) snapshotFile(folder, name string) (cached, bool) {
	link, err := os.Readlink(name)
	if err != nil {
		there, err := filepath.EvalSymlinks(name)
		return cached{path: name}, err == nil && there == name
	}
	if !filepath.IsAbs(link) {
		link = filepath.Join(filepath.Dir(name), link)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(link))
	if err != nil || dir != filepath.Join(folder, "blobs") {
		return cached{}, false
	}
	return s.blob(folder, filepath.Base(link))
}

// blob returns a repo's blob by name. Its bytes are there, or in the store that all repos share,
// whose names are hashes that the hub doesn't publish.
func (s *sharedCache) blob(folder, etag string) (cached, bool) {
	name := filepath.Join(folder, "blobs", etag)
	path, err := filepath.EvalSymlinks(name)
	if err != nil || !isETag(etag) {
		return cached{}, false
	}
	if path == name {
		return cached{path, etag}, true
	}
	sum := filepath.Base(path)
	return cached{path, etag}, names.IsSHA256(sum) &&
		path == filepath.Join(filepath.Dir(folder), "blobs", sum[:2], sum)
}

// trusts reports whether a copy may be the file, without reading it.
func (s *sharedCache) trusts(found cached, f FileRef) bool {
	_, damaged := s.damaged.Load(found.path)
	info, err := os.Stat(found.path)
	if err != nil || damaged || !info.Mode().IsRegular() || found.etag != "" && f.hash() != "" &&
		found.etag != f.hash() {
		return false
	}
	if (f.hash() != "" || f.Size > 0) && info.Size() != f.Size {
		s.discard(found.path,
			f, fmt.Sprintf("it has %d bytes, not %d as published", info.Size(), f.Size))
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

// open opens a file's copy and returns the hash in its name. A copy that vanished since it was
// found is no error, because the hub has the file.
func (s *sharedCache) open(f FileRef) (file *os.File, etag string, ok bool) {
	found, ok := s.find(f)
	if !ok {
		return nil, "", false
	}
	file, err := os.Open(found.path)
	return file, found.etag, err == nil
}

// readSmall returns a small file from the cache if its bytes have the hash in its name, or the
// caller's. A file without either counts only offline, when there's nothing better.
func (s *sharedCache) readSmall(f FileRef, maxBytes int64) ([]byte, bool) {
	file, etag, ok := s.open(f)
	if !ok {
		return nil, false
	}
	defer file.Close()
	data, err := disk.ReadAll(file, maxBytes)
	if err != nil {
		return nil, false
	}
	want := cmp.Or(etag, f.hash())
	if want == "" {
		return data, s.t.Opt.Offline
	}
	if got := hashLike(want, data); got != want {
		s.discard(file.Name(), f, "its hash is "+got+", published is "+want)
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
	root := filepath.Join(s.folder(repo), "snapshots", commit)
	info := &RepoInfo{ID: repo, SHA: commit}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return s.list(info, root, path)
	})
	if err != nil || len(info.Files) == 0 {
		return nil, s.t.Errorf(op, wire.ErrOffline, "commit %s is not in the cache", commit)
	}
	return info, nil
}

// list adds one file of a snapshot to info. It leaves out a link that isn't trusted.
func (s *sharedCache) list(info *RepoInfo, root, path string) error {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	f := FileInfo{Path: filepath.ToSlash(rel)}
	if err := checkPath(f.Path); err != nil {
		return err
	}
	found, ok := s.find(FileRef{Repo: info.ID, Commit: info.SHA, Path: f.Path})
	if !ok {
		return nil
	}
	stat, err := os.Stat(found.path)
	if err != nil {
		return err
	}
	f.Size = stat.Size()
	if names.IsSHA256(found.etag) {
		f.SHA256 = found.etag
	} else {
		f.BlobID = found.etag
	}
	info.Files = append(info.Files, f)
	return nil
}
