package hub

import (
	"os"
	"path/filepath"
	"strings"

	gohf "github.com/gomlx/go-huggingface/hub"
)

// repoFolder is the folder of a repo in the shared cache.
func (c *Client) repoFolder(repo string) string {
	return filepath.Join(c.opt.CacheDir,
		strings.Join(append([]string{string(gohf.RepoTypeModel)}, strings.Split(repo, "/")...), gohf.RepoIdSeparator))
}

// CachedPath finds a file in the cache that is shared with the Python client:
// in the snapshot of its commit, or by its hash among the blobs. The size must
// match where it is known, a symbolic link must end in the repo's own blobs, and
// a blob must carry the file's hash as its name. The content is not read; the
// caller checks its hash like that of a download.
func (c *Client) CachedPath(f FileRef) (string, bool) {
	if c.opt.CacheDir == "" || f.NoCache || checkSource(f.Repo, f.Commit, f.Path) != nil {
		return "", false
	}
	folder, err := filepath.EvalSymlinks(c.repoFolder(f.Repo))
	if err != nil {
		return "", false
	}
	for _, candidate := range c.candidates(folder, f) {
		if path, ok := trusted(folder, candidate, f); ok {
			return path, true
		}
	}
	return "", false
}

func (c *Client) candidates(folder string, f FileRef) []string {
	var list []string
	if commit, ok := c.cachedCommit(f.Repo, f.Commit); ok {
		list = append(list, filepath.Join(folder, "snapshots", commit, filepath.FromSlash(f.Path)))
	}
	if h := f.hash(); isSHA256(h) || isCommit(h) {
		list = append(list, filepath.Join(folder, "blobs", h))
	}
	return list
}

// trusted checks one candidate and gives the real file behind it.
func trusted(folder, candidate string, f FileRef) (string, bool) {
	found, err := filepath.EvalSymlinks(candidate)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(found)
	if err != nil || !info.Mode().IsRegular() || (f.hash() != "" || f.Size > 0) && info.Size() != f.Size {
		return "", false
	}
	rel, err := filepath.Rel(folder, found)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	if filepath.Dir(rel) != "blobs" {
		return found, found == candidate // the file itself, where links are not used
	}
	name := filepath.Base(rel)
	if h := f.hash(); h != "" {
		return found, name == h
	}
	return found, isSHA256(name) || isCommit(name)
}

// cachedCommit resolves a revision by the cache's refs.
func (c *Client) cachedCommit(repo, rev string) (string, bool) {
	if isCommit(rev) {
		return rev, true
	}
	if c.opt.CacheDir == "" || !filepath.IsLocal(filepath.FromSlash(rev)) || strings.Contains(rev, `\`) {
		return "", false
	}
	data, err := os.ReadFile(filepath.Join(c.repoFolder(repo), "refs", filepath.FromSlash(rev)))
	if err != nil {
		return "", false
	}
	commit := strings.TrimSpace(string(data))
	return commit, isCommit(commit)
}

// cachedFile gives a small file from the cache if its bytes have the hash that
// its blob is named by; without such a name the hub is asked.
func (c *Client) cachedFile(f FileRef, maxBytes int64) ([]byte, bool) {
	path, ok := c.CachedPath(f)
	if !ok {
		return nil, false
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxBytes {
		return nil, false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	name := filepath.Base(path)
	if filepath.Base(filepath.Dir(path)) != "blobs" {
		return data, c.opt.Offline // unnamed content counts only when there is nothing else
	}
	return data, hashLike(name, data) == name
}
