package hubtest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// File describes one file of a commit.
type File struct {
	Size   int64
	SHA256 string // of a large file, else empty
	BlobID string // git hash of the content, or of the LFS pointer
}

// Commit describes one commit.
type Commit struct {
	OID, Parent    string
	Title, Message string
	Author         string
	Date           time.Time
	Files          map[string]File
}

// Files lists a revision of a repo; nil when there is no such repo or revision.
func (s *Server) Files(name, rev string) map[string]File {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(name, rev)
	if c == nil {
		return nil
	}
	return describe(c.files)
}

func describe(files map[string]entry) map[string]File {
	out := make(map[string]File, len(files))
	for p, e := range files {
		out[p] = File{Size: e.size, SHA256: e.sha256, BlobID: e.oid}
	}
	return out
}

// find returns a commit or nil. The caller holds s.mu.
func (s *Server) find(name, rev string) *commit {
	rp := s.repos[name]
	if rp == nil {
		return nil
	}
	return rp.resolve(rev)
}

// Head returns the commit of a revision, empty when there is none.
func (s *Server) Head(name, rev string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.find(name, rev); c != nil {
		return c.oid
	}
	return ""
}

// Commits returns the history of a revision, newest first.
func (s *Server) Commits(name, rev string) []Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Commit
	for c := s.find(name, rev); c != nil; c = s.repos[name].commits[c.parent] {
		out = append(out, Commit{OID: c.oid, Parent: c.parent, Title: c.title, Message: c.message,
			Author: c.author, Date: c.date, Files: describe(c.files)})
	}
	return out
}

// Open returns the bytes of a file of a revision.
func (s *Server) Open(name, rev, path string) (*io.SectionReader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(name, rev)
	if c == nil {
		return nil, fmt.Errorf("no revision %s of %s", rev, name)
	}
	e, ok := c.files[path]
	if !ok {
		return nil, fmt.Errorf("no file %s in %s at %s", path, name, rev)
	}
	return s.body(e)
}

// body returns the content of an entry. The caller holds s.mu.
func (s *Server) body(e entry) (*io.SectionReader, error) {
	if !e.isLFS() {
		return newObject(e.content).reader()
	}
	o := s.objects[e.sha256]
	if o == nil {
		return nil, errors.New("the object is not in the store")
	}
	return o.reader()
}

func (o *object) reader() (*io.SectionReader, error) {
	if o.body == nil {
		return nil, errDropped
	}
	return io.NewSectionReader(o.body, 0, o.size), nil
}

// ReadFile is Open for a file that fits in memory.
func (s *Server) ReadFile(name, rev, path string) ([]byte, error) {
	r, err := s.Open(name, rev, path)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Repos lists the names of all repos, sorted.
func (s *Server) Repos() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.repos))
}

// Refs returns every ref of a repo (refs/heads/main, refs/pr/1, …) with its commit.
func (s *Server) Refs(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rp := s.repos[name]; rp != nil {
		return maps.Clone(rp.refs)
	}
	return nil
}

// Visibility tells how a repo is shown now: private, and gated "", "auto" or "manual".
func (s *Server) Visibility(name string) (private bool, gated string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.mustRepo(name)
	return rp.opts.Private, rp.opts.Gated
}

// Configure changes visibility, gate or availability of an existing repo.
func (s *Server) Configure(name string, opts ...RepoOption) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.mustRepo(name)
	for _, opt := range opts {
		opt(&rp.opts)
	}
}

// Rename moves a repo; the old name answers with redirects from then on.
func (s *Server) Rename(from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rename(from, to)
}

func (s *Server) rename(from, to string) {
	rp := s.mustRepo(from)
	delete(s.repos, from)
	delete(s.renames, to)
	rp.name = to
	s.repos[to] = rp
	s.renames[from] = to
	s.moveLanded(from, to)
}

// Alias lets an old name, with or without namespace ("gpt2"), answer with
// redirects to a repo.
func (s *Server) Alias(old, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renames[old] = name
}

// Forget drops an object from a repo's LFS store, as after deleting and making
// the repo again; the batch route goes on to claim that it is stored when lie
// is true.
func (s *Server) Forget(name, sha256 string, lie bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.mustRepo(name)
	delete(rp.holds, sha256)
	if lie {
		rp.holds[sha256] = false // listed, but commits do not accept it
	}
}

// RemoveRepo deletes a repo as its owner would. What it had uploaded is not held by a new repo of that name.
func (s *Server) RemoveRepo(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustRepo(name)
	delete(s.repos, name)
	if err := s.unland(name); err != nil {
		panic("hubtest: " + err.Error())
	}
}

// Holds says whether the repo's LFS store has the object, committed or not.
func (s *Server) Holds(name, sha256 string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.repos[name]
	return rp != nil && rp.holds[sha256]
}

// CreateBranch points a new branch (or tag, as refs/tags/…) at a revision.
func (s *Server) CreateBranch(name, branch, rev string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.mustRepo(name)
	c := rp.resolve(rev)
	if c == nil {
		panic("hubtest: no revision " + rev + " of " + name)
	}
	rp.refs[branchRef(branch)] = c.oid
}
