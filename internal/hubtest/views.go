package hubtest

import (
	"fmt"
	"io"
	"maps"
)

// at returns a revision of a repo; the zero Commit when there is no such repo or revision.
func (s *store) at(name, rev string) (c Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.repos[name].resolve(rev); found != nil {
		c = *found
	}
	return c
}

// Files lists a revision of a repo; nil when there is no such repo or revision.
func (s *store) Files(name, rev string) map[string]File { return maps.Clone(s.at(name, rev).Files) }

// Head returns the commit of a revision, empty when there is none.
func (s *store) Head(name, rev string) string { return s.at(name, rev).OID }

// Commits returns the history of a revision, newest first.
func (s *store) Commits(name, rev string) (out []Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.repos[name]
	for _, c := range rp.history(rp.resolve(rev)) {
		out = append(out, *c)
	}
	return out
}

// Open returns the bytes of a file of a revision.
func (s *store) Open(name, rev, path string) (*io.SectionReader, error) {
	e, ok := s.at(name, rev).Files[path]
	if !ok {
		return nil, fmt.Errorf("no file %s in %s at %s", path, name, rev)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(e)
}

// ReadFile is Open for a file that fits in memory.
func (s *store) ReadFile(name, rev, path string) ([]byte, error) {
	r, err := s.Open(name, rev, path)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Refs returns every ref of a repo (refs/heads/main, refs/tags/v1, …) with its commit.
func (s *store) Refs(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rp := s.repos[name]; rp != nil {
		return maps.Clone(rp.refs)
	}
	return nil
}

// Visibility tells how a repo is shown now: private, and gated "", "auto" or "manual".
func (s *store) Visibility(name string) (private bool, gated string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	opts := s.mustRepo(name).opts
	return opts.Private, opts.Gated
}
