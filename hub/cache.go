package hub

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	gohf "github.com/gomlx/go-huggingface/hub"
	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/internal/smallfile"
)

// sharedCache is the folder of downloaded files that the Python client uses, too.
type sharedCache struct {
	t       *transport // for log and errors
	dir     string     // empty for no cache
	damaged sync.Map   // paths of files that differ from those published
}

// CachedPath finds a file in the cache that is shared with the Python client: in the snapshot of its commit, or by its
// hash among the blobs. The size must match where it is known, a symbolic link must end in the repo's own blobs, and a
// blob must carry the file's hash as its name. The content is not read: the caller checks its hash like that of a
// download, and asks CheckCached when it is wrong.
func (c *Client) CachedPath(f FileRef) (string, bool) { return c.cache.find(f) }

// CheckCached is CachedPath for callers that read a file whole and want its hash checked before: it reads the copy once.
// A copy with another hash is told in the log and not used again by this client, until CacheFile.Commit has put the right
// one in its place. Without a known hash nothing is checked.
func (c *Client) CheckCached(ctx context.Context, f FileRef) (string, bool) {
	for {
		path, ok := c.cache.find(f)
		if !ok || f.hash() == "" {
			return path, ok
		}
		got, err := f.hashFile(ctx, path)
		switch {
		case ctx.Err() != nil:
			return "", false
		case err != nil:
			c.cache.discard(path, f, err.Error())
		case got == f.hash():
			return path, true
		default:
			c.cache.discard(path, f, fmt.Sprintf("its hash is %s, published is %s", got, f.hash()))
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
	h := f.NewHash()
	if err := copyAll(ctx, h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// copyAll copies in large pieces and ends with the context.
func copyAll(ctx context.Context, w io.Writer, r io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, &contextReader{ctx, r}, make([]byte, 1<<20))
	return err
}

type contextReader struct {
	ctx context.Context //nolint:containedctx // of the one copy that reads it
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

// folder is the folder of a repo.
func (s *sharedCache) folder(repo string) string {
	parts := append([]string{string(gohf.RepoTypeModel)}, strings.Split(repo, "/")...)
	return filepath.Join(s.dir, strings.Join(parts, gohf.RepoIdSeparator))
}

// maxRef is far above a commit with its line end.
const maxRef = 4096

// commit resolves a revision by the cache's refs.
func (s *sharedCache) commit(repo, rev string) (string, bool) {
	if isCommit(rev) {
		return rev, true
	}
	if s.dir == "" || !filepath.IsLocal(filepath.FromSlash(rev)) || strings.Contains(rev, `\`) {
		return "", false
	}
	data, err := smallfile.Read(filepath.Join(s.folder(repo), "refs", filepath.FromSlash(rev)), maxRef)
	if err != nil {
		return "", false
	}
	commit := strings.TrimSpace(string(data))
	return commit, isCommit(commit)
}

// find gives the path of a file's copy, as CachedPath promises.
func (s *sharedCache) find(f FileRef) (string, bool) {
	if s.dir == "" || f.NoCache || checkSource(f.Repo, f.Commit, f.Path) != nil {
		return "", false
	}
	folder, err := filepath.EvalSymlinks(s.folder(f.Repo))
	if err != nil {
		return "", false
	}
	if commit, ok := s.commit(f.Repo, f.Commit); ok {
		if path, ok := s.trusted(folder, filepath.Join(folder, "snapshots", commit, filepath.FromSlash(f.Path)), f); ok {
			return path, true
		}
	}
	if h := f.hash(); isSHA256(h) || isCommit(h) {
		return s.trusted(folder, filepath.Join(folder, "blobs", h), f)
	}
	return "", false
}

// trusted checks one candidate and gives the real file behind it.
func (s *sharedCache) trusted(folder, candidate string, f FileRef) (string, bool) {
	found, err := filepath.EvalSymlinks(candidate)
	if err != nil {
		return "", false
	}
	_, damaged := s.damaged.Load(found)
	info, err := os.Stat(found)
	if err != nil || damaged || !info.Mode().IsRegular() || !belongs(folder, candidate, found, f) {
		return "", false
	}
	if (f.hash() != "" || f.Size > 0) && info.Size() != f.Size {
		s.discard(found, f, fmt.Sprintf("it has %d bytes, published are %d", info.Size(), f.Size))
		return "", false
	}
	return found, true
}

// belongs says whether the place and name of the file to which a candidate leads fit the file that is asked for.
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

// discard remembers a file of the cache that must not be used, and says so once.
func (s *sharedCache) discard(path string, f FileRef, why string) {
	if _, known := s.damaged.LoadOrStore(path, true); !known {
		s.t.opt.Log.Warn("the shared cache's copy is damaged and is not used", "file", f.String(), "copy", path, "why", why)
	}
}

// open opens a file's copy. A copy that has vanished since it was found is no error: the hub has the file.
func (s *sharedCache) open(f FileRef) (*os.File, bool) {
	path, ok := s.find(f)
	if !ok {
		return nil, false
	}
	file, err := os.Open(path)
	return file, err == nil
}

// readSmall gives a small file from the cache if its bytes have the hash that its blob is named by. A file without such
// a name counts only offline, when nothing better can be had.
func (s *sharedCache) readSmall(f FileRef, maxBytes int64) ([]byte, bool) {
	file, ok := s.open(f)
	if !ok {
		return nil, false
	}
	defer file.Close()
	data, err := smallfile.All(file, maxBytes)
	if err != nil {
		return nil, false
	}
	folder, name := filepath.Split(file.Name())
	if filepath.Base(folder) != "blobs" {
		return data, s.t.opt.Offline
	}
	if got := hashLike(name, data); got != name {
		s.discard(file.Name(), f, "its hash is "+got+", published is "+name)
		return nil, false
	}
	return data, true
}

// info describes a snapshot of the cache. It knows only the files that are there; the plan notices a shard that was never
// downloaded.
func (s *sharedCache) info(repo, revision string) (*RepoInfo, error) {
	op := "read model info of " + repo
	commit, ok := s.commit(repo, revision)
	if !ok {
		return nil, s.t.errorf(op, ErrOffline, "revision %s is not in the cache", revision)
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
		return nil, s.t.errorf(op, ErrOffline, "commit %s is not in the cache", commit)
	}
	if readme, ok := s.readSmall(FileRef{Repo: repo, Commit: commit, Path: "README.md"}, maxCard); ok {
		info.CardData, _ = frontMatter(readme)
	}
	info.PipelineTag, _ = info.CardData["pipeline_tag"].(string)
	info.LibraryName, _ = info.CardData["library_name"].(string)
	return info, nil
}

// list adds one file of a snapshot to info; a link that is not trusted is left out.
func (s *sharedCache) list(info *RepoInfo, root, path string) error {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	f := FileInfo{Path: filepath.ToSlash(rel)}
	if err := ValidPath(f.Path); err != nil {
		return err
	}
	copied, ok := s.find(FileRef{Repo: info.ID, Commit: info.SHA, Path: f.Path})
	if !ok {
		return nil
	}
	stat, err := os.Stat(copied)
	if err != nil {
		return err
	}
	f.Size = stat.Size()
	switch name := filepath.Base(copied); {
	case isSHA256(name):
		f.SHA256 = name
	case isCommit(name):
		f.BlobID = name
	}
	info.Files = append(info.Files, f)
	return nil
}

// maxCard is far above any model card.
const maxCard = 10 << 20

// frontMatter parses the YAML between the first two lines of three dashes.
func frontMatter(card []byte) (map[string]any, error) {
	card = bytes.ReplaceAll(card, []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(card, []byte("---\n"))
	block, _, ok2 := bytes.Cut(rest, []byte("\n---"))
	if !ok || !ok2 {
		return nil, fmt.Errorf("card has no front matter")
	}
	var front map[string]any
	if err := yaml.Unmarshal(block, &front); err != nil {
		return nil, fmt.Errorf("read card: %w", err)
	}
	return front, nil
}
