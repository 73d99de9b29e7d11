package hub

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
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
// a blob must carry the file's hash as its name. The content is not read: the
// caller checks its hash like that of a download, and asks CheckCached when it
// is wrong.
func (c *Client) CachedPath(f FileRef) (string, bool) {
	if c.opt.CacheDir == "" || f.NoCache || checkSource(f.Repo, f.Commit, f.Path) != nil {
		return "", false
	}
	folder, err := filepath.EvalSymlinks(c.repoFolder(f.Repo))
	if err != nil {
		return "", false
	}
	for _, candidate := range c.candidates(folder, f) {
		if path, ok := c.trusted(folder, candidate, f); ok {
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
func (c *Client) trusted(folder, candidate string, f FileRef) (string, bool) {
	found, err := filepath.EvalSymlinks(candidate)
	if err != nil || c.isDamaged(found) {
		return "", false
	}
	info, err := os.Stat(found)
	if err != nil || !info.Mode().IsRegular() || !belongs(folder, candidate, found, f) {
		return "", false
	}
	if (f.hash() != "" || f.Size > 0) && info.Size() != f.Size {
		c.damaged(found, f, fmt.Sprintf("it has %d bytes, published are %d", info.Size(), f.Size))
		return "", false
	}
	return found, true
}

// belongs says whether the file that a candidate leads to may be the one that
// is asked for, as far as its place and name tell.
func belongs(folder, candidate, found string, f FileRef) bool {
	rel, err := filepath.Rel(folder, found)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	if filepath.Dir(rel) != "blobs" {
		return found == candidate // the file itself, where links are not used
	}
	name := filepath.Base(rel)
	if h := f.hash(); h != "" {
		return name == h
	}
	return isSHA256(name) || isCommit(name)
}

// CheckCached is CachedPath for those who read a file whole and want its hash
// checked before: it reads the copy once. One that is not what was published is
// told in the log and not used again by this client, until CacheFile.Commit has
// put the right one in its place. Without a known hash nothing is checked.
func (c *Client) CheckCached(ctx context.Context, f FileRef) (string, bool) {
	for {
		path, ok := c.CachedPath(f)
		if !ok || f.hash() == "" {
			return path, ok
		}
		got, err := f.hashFile(ctx, path)
		switch {
		case ctx.Err() != nil:
			return "", false
		case err == nil && got == f.hash():
			return path, true
		case err == nil:
			c.damaged(path, f, fmt.Sprintf("its hash is %s, published is %s", got, f.hash()))
		default:
			c.damaged(path, f, err.Error())
		}
	}
}

// hashFile hashes a file as the hub hashes the referenced one.
func (f FileRef) hashFile(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := f.newHash()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, &contextReader{ctx, file}, make([]byte, 1<<20)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// damaged remembers a file of the cache that must not be used, and says so once.
func (c *Client) damaged(path string, f FileRef, why string) {
	c.mu.Lock()
	known := c.spoiled[path]
	c.spoiled[path] = true
	c.mu.Unlock()
	if !known {
		c.t.log.Warn("the shared cache's copy is damaged and is not used", "file", f.String(), "copy", path, "why", why)
	}
}

func (c *Client) isDamaged(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spoiled[path]
}

// repaired forgets that a file of the cache was damaged.
func (c *Client) repaired(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.spoiled, path)
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
	if got := hashLike(name, data); got != name {
		c.damaged(path, f, "its hash is "+got+", published is "+name)
		return nil, false
	}
	return data, true
}
