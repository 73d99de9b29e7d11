package hubtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// AddDir serves every folder root/<namespace>/<name>/ as a repo. It skips names that start with a
// dot, and the folders .git and .cache inside a repo. Don't write to the files while the server
// runs; replacing them by rename is fine.
func (s *Server) AddDir(root string) error {
	names, err := fs.Glob(os.DirFS(root), "*/*")
	if err != nil {
		return err
	}
	for _, name := range names {
		dir := filepath.Join(root, name)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || strings.HasPrefix(name, ".") ||
			strings.Contains(name, "/.") {
			continue
		}
		if err := s.addFolder(name, dir); err != nil {
			return fmt.Errorf("add %s: %w", dir, err)
		}
	}
	return nil
}

// addFolder makes a repo from a folder: small files at once, and then each large one, whose bytes
// stay where they are.
func (s *Server) addFolder(name, dir string) error {
	small, large := map[string][]byte{}, map[string]*os.File{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		f, err := os.Open(filepath.Join(dir, p))
		if err != nil {
			return err
		}
		head, err := io.ReadAll(io.LimitReader(f, s.cfg.lfsThreshold))
		if err == nil && s.cfg.wantsLFS(p, head[:min(len(head), 512)], int64(len(head))) {
			large[p] = f
			return nil
		}
		small[p] = head
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return err
	}
	s.AddRepo(name, small)
	for _, p := range slices.Sorted(maps.Keys(large)) {
		info, err := large[p].Stat()
		if err != nil {
			return err
		}
		if _, err := s.AddGenerated(name, p, info.Size(), "", large[p]); err != nil {
			return err
		}
	}
	return nil
}

// pushFolder writes the main branch of every repo as files; "" writes nothing. The caller holds the
// lock of the store.
type pushFolder string

func (f pushFolder) path(name string) string {
	return filepath.Join(string(f), filepath.FromSlash(name))
}

// land writes what a commit on main changes, each file by rename, and config.json last.
func (s *store) land(repo string, before, files map[string]File) error {
	if s.folder == "" {
		return nil
	}
	order := slices.Sorted(maps.Keys(files))
	if i, found := slices.BinarySearch(order, "config.json"); found {
		order = append(slices.Delete(order, i, i+1), "config.json")
	}
	for _, p := range order {
		if before[p].BlobID != files[p].BlobID {
			if err := s.write(files[p], s.folder.path(repo+"/"+p)); err != nil {
				return fmt.Errorf("write %s: %w", p, err)
			}
		}
	}
	for p := range before {
		if _, ok := files[p]; !ok {
			s.folder.removeFile(repo, p)
		}
	}
	return nil
}

// write writes one file.
func (s *store) write(e File, file string) error {
	body, err := s.open(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	tmp := s.folder.path(".landing")
	out, err := os.Create(tmp)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, body)
	return errors.Join(err, out.Close(), os.Rename(tmp, file))
}

// removeFile deletes a file of a repo, and the folders that become empty.
func (f pushFolder) removeFile(repo, p string) {
	for ; p != "."; p = path.Dir(p) {
		if os.Remove(f.path(repo+"/"+p)) != nil {
			return
		}
	}
}

// move renames the folder of a repo, if the repo has one.
func (f pushFolder) move(from, to string) {
	if f != "" {
		_ = os.MkdirAll(filepath.Dir(f.path(to)), 0o755)
		_ = os.Rename(f.path(from), f.path(to))
	}
}
