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
	damaged sync.Map        // paths of files that differ from those published
}

// cached is a file's copy in the cache.
type cached struct {
	path string // of the bytes, free of links
	// the name of the blob: sha256 or git blob hash; empty for a file that lies in the snapshot
	// itself
	etag string
}

// folder is the folder of a repo.
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

// find gives a file's copy: in the snapshot of its commit, or by its hash among the blobs. The size
// must match where it is known, a link must end in the repo's own blobs or in the store that all
// repos share, and the blob must carry the file's hash as its name. The content is not read.
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

// snapshotFile follows a file of a snapshot: a link to a blob of its repo, or the file itself where
// links are not used.
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

// blob gives a blob of a repo by its name. Its bytes lie there, or in the store that all repos
// share, whose names say nothing about them that the hub publishes.
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

// trusts says whether a copy may be the file that is asked for, without looking into it.
func (s *sharedCache) trusts(found cached, f FileRef) bool {
	_, damaged := s.damaged.Load(found.path)
	info, err := os.Stat(found.path)
	if err != nil || damaged || !info.Mode().IsRegular() || found.etag != "" && f.hash() != "" &&
		found.etag != f.hash() {
		return false
	}
	if (f.hash() != "" || f.Size > 0) && info.Size() != f.Size {
		s.discard(found.path,
			f, fmt.Sprintf("it has %d bytes, published are %d", info.Size(), f.Size))
		return false
	}
	return true
}

// discard remembers a file of the cache that must not be used, and says so once.
func (s *sharedCache) discard(path string, f FileRef, why string) {
	if _, known := s.damaged.LoadOrStore(path, true); !known {
		s.t.Opt.Log.Warn("the shared cache's copy is damaged and is not used", "file", f.String(),
			"copy", path, "why", why)
	}
}

// open opens a file's copy and gives the hash that it is named by. A copy that has vanished since
// it was found is no error: the hub has the file.
func (s *sharedCache) open(f FileRef) (file *os.File, etag string, ok bool) {
	found, ok := s.find(f)
	if !ok {
		return nil, "", false
	}
	file, err := os.Open(found.path)
	return file, found.etag, err == nil
}

// readSmall gives a small file from the cache if its bytes have the hash that its blob is named by,
// or that the caller knows. A file without either counts only offline, when nothing better can be
// had.
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

// info describes a snapshot of the cache. It knows only the files that are there; the plan notices
// a shard that was never downloaded.
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

// list adds one file of a snapshot to info; a link that is not trusted is left out.
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
