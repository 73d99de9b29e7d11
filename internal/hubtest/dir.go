package hubtest

import (
	"crypto/sha256"
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

// AddDir serves every folder root/<namespace>/<name>/ as a repo. Names that
// start with a dot are left out, as are .git and .cache folders inside a repo.
// The files must not be changed in place while the server runs; replacing them
// by rename is fine.
func (s *Server) AddDir(root string) error {
	dirs, err := filepath.Glob(filepath.Join(root, "*", "*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
			continue
		}
		if err := s.addFolder(name, dir); err != nil {
			return fmt.Errorf("add %s: %w", dir, err)
		}
	}
	return nil
}

// addFolder makes one repo from a folder.
func (s *Server) addFolder(name, dir string) error {
	paths, err := listFolder(dir)
	if err != nil {
		return err
	}
	attributes, err := os.ReadFile(filepath.Join(dir, attributesFile))
	if errors.Is(err, fs.ErrNotExist) {
		attributes, err = []byte(defaultAttributes), nil
	}
	if err != nil {
		return err
	}
	files, objects := map[string]entry{}, []*object{}
	rs := parseRules(string(attributes), true)
	for _, p := range paths {
		e, o, err := s.loadFile(rs, p, filepath.Join(dir, filepath.FromSlash(p)))
		if err != nil {
			return err
		}
		files[p] = e
		if o != nil {
			objects = append(objects, o)
		}
	}
	s.mu.Lock()
	rp := s.newRepo(name, repoOptions{})
	rp.landed = maps.Clone(files)
	if _, ok := files[attributesFile]; !ok {
		files[attributesFile] = gitEntry(attributes)
	}
	rp.add(s.cfg.clock(), "refs/heads/main", &commit{title: "Upload files", author: rp.namespace(), files: files})
	s.mu.Unlock()
	for _, o := range objects {
		s.store(rp, o)
	}
	return nil
}

func listFolder(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == ".cache" {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(dir, p)
		paths = append(paths, filepath.ToSlash(rel))
		return err
	})
	return paths, err
}

// loadFile reads a small file, or hashes a large one.
func (s *Server) loadFile(rs rules, name, file string) (entry, *object, error) {
	f, err := os.Open(file)
	if err != nil {
		return entry{}, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return entry{}, nil, err
	}
	sample := make([]byte, 512)
	n, _ := f.ReadAt(sample, 0)
	if s.wantsLFS(rs, name, sample[:n], info.Size()) {
		sum, err := hashBody(f, info.Size())
		o := &object{sha256: sum, size: info.Size(), body: f}
		return lfsEntry(sum, o.size), o, err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	return gitEntry(content), nil, err
}

// openPushDir makes the folder for uploads that are not committed yet. It lies
// beside the repos, so that files get there by link or rename.
func (s *Server) openPushDir() (err error) {
	if s.cfg.pushDir == "" {
		return nil
	}
	if err := os.MkdirAll(s.cfg.pushDir, 0o755); err != nil {
		return err
	}
	s.spool, err = os.MkdirTemp(s.cfg.pushDir, ".hubd-")
	return err
}

func (s *Server) tempFile() (*os.File, error) {
	f, err := os.CreateTemp(s.spool, "object-")
	if err != nil {
		return nil, err
	}
	return f, f.Chmod(0o644)
}

func (s *Server) newFileSink() (sink, error) {
	f, err := s.tempFile()
	return &fileSink{f: f, hash: sha256.New()}, err
}

// land writes the main branch of a repo to the push folder: only what changed,
// each file by rename, config.json last. The caller holds s.mu.
func (s *Server) land(rp *repo) error {
	if s.cfg.pushDir == "" {
		return nil
	}
	dir := filepath.Join(s.cfg.pushDir, filepath.FromSlash(rp.name))
	files := rp.resolve("main").files
	order := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		if (a == "config.json") != (b == "config.json") {
			if a == "config.json" {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	for _, p := range order {
		if e := files[p]; rp.landed[p].oid != e.oid {
			if err := s.landFile(e, filepath.Join(dir, filepath.FromSlash(p))); err != nil {
				return fmt.Errorf("write %s: %w", p, err)
			}
		}
	}
	for p := range rp.landed {
		if _, ok := files[p]; !ok {
			removeLanded(dir, p)
		}
	}
	rp.landed = maps.Clone(files)
	return nil
}

// landFile puts one file in its place.
func (s *Server) landFile(e entry, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := s.tempFile()
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if o := s.objects[e.sha256]; o != nil && o.path != "" {
		os.Remove(f.Name())
		if os.Link(o.path, f.Name()) == nil {
			return os.Rename(f.Name(), file)
		}
	}
	body, err := s.body(e)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, body); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// removeLanded deletes a file and the folders that it leaves empty.
func removeLanded(dir, p string) {
	for ; p != "."; p = path.Dir(p) {
		if os.Remove(filepath.Join(dir, filepath.FromSlash(p))) != nil {
			return
		}
	}
}

// unland deletes the folder of a repo. The caller holds s.mu.
func (s *Server) unland(name string) error {
	if s.cfg.pushDir == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(s.cfg.pushDir, filepath.FromSlash(name)))
}

// moveLanded renames the folder of a repo, if it has one. The caller holds s.mu.
func (s *Server) moveLanded(from, to string) {
	if s.cfg.pushDir == "" {
		return
	}
	dst := filepath.Join(s.cfg.pushDir, filepath.FromSlash(to))
	_ = os.MkdirAll(filepath.Dir(dst), 0o755)
	_ = os.Rename(filepath.Join(s.cfg.pushDir, filepath.FromSlash(from)), dst)
}
