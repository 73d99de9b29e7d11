package hub

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	gohf "github.com/gomlx/go-huggingface/hub"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
)

// sharedCache is the folder of downloaded files that the Python client uses, too. A repo's files
// lie in its folder:
//
//	models--ns--name/refs/main                   the commit that a branch had
//	models--ns--name/snapshots/COMMIT/PATH       a link to the blob, or the file itself where links cannot be made
//	models--ns--name/trees/COMMIT.json           all files of the commit, with sizes and hashes; newer clients write it
//	models--ns--name/blobs/ETAG                  the bytes, named by the hash that the hub publishes for them
//	blobs/XX/XETHASH                             the bytes of a blob that is a link to here
//
// huggingface_hub from 1.32 on stores what several repos hold once, under another hash:
// https://github.com/huggingface/huggingface_hub/pull/4498.
type sharedCache struct {
	t       *transport // for its log and errors
	dir     string     // "" for none
	damaged sync.Map   // paths of files that differ from the published ones
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

// find returns the path of a file's copy: among the repo's blobs, by its hash, or on systems
// without links in the snapshot of its commit. It doesn't read the content. A link in a snapshot
// only names a hash, so it doesn't matter where it leads.
func (s *sharedCache) find(f FileRef) (path string, ok bool) {
	if s.dir == "" || f.NoCache || checkSource(f.Repo, f.Commit, f.Path) != nil {
		return "", false
	}
	if isETag(f.Hash()) {
		path = filepath.Join(s.folder(f.Repo), "blobs", f.Hash())
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
	if (f.Hash() != "" || f.Size > 0) && info.Size() != f.Size {
		s.discard(path, f, fmt.Sprintf("it has %d bytes, not %d as published", info.Size(), f.Size))
		return false
	}
	return true
}

// discard marks a file of the cache that must not be used, and logs that once.
func (s *sharedCache) discard(path string, f FileRef, why string) {
	if _, known := s.damaged.LoadOrStore(path, true); !known {
		s.t.opt.Log.Warn("the shared cache's copy is damaged and is not used", "file", f.String(),
			"copy", path, "why", why)
	}
}

// open opens a file's copy. A copy that vanished since it was found is no error, because the hub
// has the file.
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
	if f.Hash() == "" {
		return data, s.t.opt.Offline
	}
	if got := hashLike(f.Hash(), data); got != f.Hash() {
		s.discard(file.Name(), f, "its hash is "+got+", published is "+f.Hash())
		return nil, false
	}
	return data, true
}

// info describes a commit by the cache: its list of files or, without one, its snapshot, which
// knows only the files that were downloaded. Absent are those that it lacks. Weights need a hash,
// of the list or of a link: a copy that nothing can be compared with isn't known to be the repo's.
func (s *sharedCache) info(repo, revision string) (*RepoInfo, error) {
	op := "read model info of " + repo
	commit, ok := s.commit(repo, revision)
	if !ok {
		return nil, s.t.errorf(op, ErrOffline, "revision %s is not in the cache", revision)
	}
	info := &RepoInfo{ID: repo, SHA: commit}
	root := s.snapshot(repo, commit)
	if _, err := os.Stat(root); err != nil {
		return nil, s.t.errorf(op, ErrOffline, "commit %s is not in the cache", commit)
	}
	listed, err := s.tree(repo, commit)
	info.Unlisted = err == nil && listed == nil
	if info.Files = listed; info.Unlisted {
		s.t.opt.Log.Warn("the shared cache doesn't say which files the commit has, so some may be missing",
			"repo", repo, "commit", commit)
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return info.list(root, path)
		})
	}
	if err != nil {
		return nil, s.t.errorf(op, ErrOffline, "%v", err)
	}
	for _, f := range info.Files {
		if f.Hash() == "" && strings.HasSuffix(f.Path, ".safetensors") {
			return nil, s.t.errorf(op, ErrOffline, "nothing in the cache says which bytes %s has at "+
				"commit %s; you can convert the folder %s as a model of yours", f.Path, commit, root)
		}
		if _, ok := s.find(f.Ref(repo, commit)); !ok {
			info.Absent = append(info.Absent, f.Path)
		}
	}
	if len(info.Absent) == len(info.Files) {
		return nil, s.t.errorf(op, ErrOffline, "commit %s is not in the cache", commit)
	}
	return info, nil
}

// tree returns the list of a commit's files that huggingface_hub writes, nil if there is none that
// can be read: _tree_cache.py there, https://github.com/huggingface/huggingface_hub/pull/4394.
func (s *sharedCache) tree(repo, commit string) ([]FileInfo, error) {
	data, err := disk.Read(filepath.Join(s.folder(repo), "trees", commit+".json"), maxTree)
	var doc struct {
		Version int `json:"format_version"`
		Files   map[string]struct {
			Size    int64
			BlobID  string `json:"blob_id"`
			SHA256  string `json:"lfs_sha256"`
			LFSSize int64  `json:"lfs_size"`
			XetHash string `json:"xet_hash"`
		}
	}
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err != nil || doc.Version != 1 {
		return nil, nil //nolint:nilerr // what can't be read is no list, as for the Python client
	}
	files := []FileInfo{}
	for _, path := range slices.Sorted(maps.Keys(doc.Files)) {
		row := doc.Files[path]
		f := FileInfo{Path: path, Size: row.Size, BlobID: row.BlobID, XetHash: row.XetHash}
		if row.SHA256 != "" {
			f.SHA256, f.Size = row.SHA256, row.LFSSize
		}
		if err := checkPath(path); err != nil {
			return nil, err
		}
		if f.Size < 0 || f.SHA256 != "" && !names.IsSHA256(f.SHA256) {
			return nil, fmt.Errorf("bad size or hash of %q in trees/%s.json", path, commit)
		}
		files = append(files, f)
	}
	return files, nil
}

// list adds one file of a snapshot. It leaves out a link to anything but a blob. A link without its
// blob is a file of the commit, too.
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
		case names.IsBlob(etag):
			f.BlobID = etag
		default:
			return nil
		}
	}
	stat, err := os.Stat(path)
	switch {
	case err == nil && stat.Mode().IsRegular():
		f.Size = stat.Size()
	case err == nil || f.Hash() == "":
		return nil
	}
	i.Files = append(i.Files, f)
	return nil
}

// Unsure returns the error of an offline run for what it has found wrong with a model, if Info knew
// only some files of a repo: the others may be on the Hub. Otherwise it returns nil.
func (c *Client) Unsure(found error) error {
	info := c.unlisted.Load()
	if info == nil {
		return nil
	}
	return c.t.errorf("read "+info.ID, ErrOffline, "the shared cache doesn't list all files of "+
		"commit %s: %v", info.SHA, found)
}

// Missing returns the error of an offline run that needs files which the shared cache lacks.
func (c *Client) Missing(repo, commit string, paths []string) error {
	return c.t.errorf("read "+repo, ErrOffline, "the shared cache lacks %s of commit %s",
		human.List(paths), commit)
}
