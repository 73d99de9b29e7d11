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

// AddDir serves every folder root/<namespace>/<name>/ as a repo. Names that start with a dot are left out, and so are the
// folders .git and .cache inside a repo. The files must not be changed in place while the server runs; replacing them by
// rename is fine.
func (s *Server) AddDir(root string) error {
	names, err := fs.Glob(os.DirFS(root), "*/*")
	if err != nil {
		return err
	}
	for _, name := range names {
		dir := filepath.Join(root, name)
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
	attributes, err := os.ReadFile(filepath.Join(dir, attributesFile))
	if errors.Is(err, fs.ErrNotExist) {
		attributes, err = []byte(defaultAttributes), nil
	}
	if err != nil {
		return err
	}
	files, holds := map[string]File{}, map[string]bool{}
	rules := parseRules(string(attributes), true)
	err = fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		files[p], err = s.loadFile(rules, p, filepath.Join(dir, p))
		if files[p].isLFS() {
			holds[files[p].SHA256] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	rp := s.newRepo(name)
	rp.landed, rp.holds = maps.Clone(files), holds
	if _, ok := files[attributesFile]; !ok {
		files[attributesFile] = gitFile(string(attributes))
	}
	rp.add(s.cfg.clock(), "refs/heads/main", &Commit{Title: "Upload files", Author: rp.namespace(), Files: files})
	return nil
}

// loadFile reads a small file, or hashes a large one and makes it an object.
func (s *Server) loadFile(rs rules, name, file string) (File, error) {
	f, err := os.Open(file)
	if err != nil {
		return File{}, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return File{}, err
	}
	sample := make([]byte, 512)
	n, _ := f.ReadAt(sample, 0)
	if s.cfg.wantsLFS(rs, name, sample[:n], info.Size()) {
		sum, err := hashBody(f, info.Size())
		s.objects.add(&object{sha256: sum, size: info.Size(), body: f})
		return largeFile(sum, info.Size()), err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	return gitFile(string(content)), err
}

// pushFolder shows the main branch of every repo as files. A nil folder does nothing. The caller holds the lock of the
// store.
type pushFolder struct {
	root    string
	objects *objects
}

// openPushFolder makes the folder, and a second one inside it for uploads that are not committed yet, so that a link or a
// rename brings their files to their places.
func openPushFolder(root string, objects *objects) (*pushFolder, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	var err error
	objects.spool, err = os.MkdirTemp(root, ".hubd-")
	return &pushFolder{root, objects}, err
}

func (f *pushFolder) path(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

// land writes the changed files of the main branch, each by rename, config.json last.
func (f *pushFolder) land(rp *repo) error {
	if f == nil {
		return nil
	}
	files := rp.resolve("main").Files
	order := slices.Sorted(maps.Keys(files))
	if i, found := slices.BinarySearch(order, "config.json"); found {
		order = append(slices.Delete(order, i, i+1), "config.json")
	}
	for _, p := range order {
		if e := files[p]; rp.landed[p].BlobID != e.BlobID {
			if err := f.write(e, f.path(rp.name+"/"+p)); err != nil {
				return fmt.Errorf("write %s: %w", p, err)
			}
		}
	}
	for p := range rp.landed {
		if _, ok := files[p]; !ok {
			f.removeFile(rp.name, p)
		}
	}
	rp.landed = maps.Clone(files)
	return nil
}

// write puts one file in its place: a link to the upload where there is one, a copy otherwise.
func (f *pushFolder) write(e File, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	tmp := filepath.Join(f.objects.spool, "landing")
	defer os.Remove(tmp)
	if o := f.objects.get(e.SHA256); o == nil || o.path == "" || os.Link(o.path, tmp) != nil {
		if err := f.copy(e, tmp); err != nil {
			return err
		}
	}
	return os.Rename(tmp, file)
}

func (f *pushFolder) copy(e File, file string) error {
	body, err := f.objects.open(e)
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, body)
	return errors.Join(err, out.Close())
}

// removeFile deletes a file of a repo, and the folders that it leaves empty.
func (f *pushFolder) removeFile(repo, p string) {
	for ; p != "."; p = path.Dir(p) {
		if os.Remove(f.path(repo+"/"+p)) != nil {
			return
		}
	}
}

// remove deletes the folder of a repo.
func (f *pushFolder) remove(repo string) error {
	if f == nil {
		return nil
	}
	return os.RemoveAll(f.path(repo))
}

// move renames the folder of a repo, if the repo has one.
func (f *pushFolder) move(from, to string) {
	if f == nil {
		return
	}
	_ = os.MkdirAll(filepath.Dir(f.path(to)), 0o755)
	_ = os.Rename(f.path(from), f.path(to))
}
