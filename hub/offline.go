package hub

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

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
