package hub

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// cachedInfo describes a snapshot of the shared cache. It knows only the files
// that are there; a shard that was never downloaded is missed by the plan.
func (c *Client) cachedInfo(repo, revision string) (*RepoInfo, error) {
	op := "read model info of " + repo
	commit, ok := c.cachedCommit(repo, revision)
	if !ok {
		return nil, c.errorf(op, ErrOffline, "revision %s is not in the cache", revision)
	}
	root := filepath.Join(c.repoFolder(repo), "snapshots", commit)
	info := &RepoInfo{ID: repo, SHA: commit}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return c.addCached(info, root, path)
	})
	if err != nil || len(info.Files) == 0 {
		return nil, c.errorf(op, ErrOffline, "commit %s is not in the cache", commit)
	}
	info.CardData = c.cachedCard(info)
	info.PipelineTag, _ = info.CardData["pipeline_tag"].(string)
	info.LibraryName, _ = info.CardData["library_name"].(string)
	return info, nil
}

// addCached lists one file of a snapshot; a link that is not trusted is left out.
func (c *Client) addCached(info *RepoInfo, root, path string) error {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	f := FileInfo{Path: filepath.ToSlash(rel)}
	if err := ValidPath(f.Path); err != nil {
		return err
	}
	cached, ok := c.CachedPath(FileRef{Repo: info.ID, Commit: info.SHA, Path: f.Path})
	if !ok {
		return nil
	}
	stat, err := os.Stat(cached)
	if err != nil {
		return err
	}
	f.Size = stat.Size()
	switch name := filepath.Base(cached); {
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

// cachedCard reads the front matter of the cached README, nil if there is none.
func (c *Client) cachedCard(info *RepoInfo) map[string]any {
	data, ok := c.cachedFile(FileRef{Repo: info.ID, Commit: info.SHA, Path: "README.md"}, maxCard)
	if !ok {
		return nil
	}
	front, err := frontMatter(data)
	if err != nil {
		return nil
	}
	return front
}

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
