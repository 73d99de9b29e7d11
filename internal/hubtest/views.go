package hubtest

import (
	"fmt"
	"io"
	"maps"
)

// views are what a test sees of the repos.
type views struct{ store *store }

// at returns a revision of a repo; the zero Commit when there is no such repo or revision.
func (v views) at(name, rev string) (c Commit) {
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	if found := v.store.repos[name].resolve(rev); found != nil {
		c = *found
	}
	return c
}

// Files lists a revision of a repo; nil when there is no such repo or revision.
func (v views) Files(name, rev string) map[string]File { return maps.Clone(v.at(name, rev).Files) }

// Head returns the commit of a revision, empty when there is none.
func (v views) Head(name, rev string) string { return v.at(name, rev).OID }

// Commits returns the history of a revision, newest first.
func (v views) Commits(name, rev string) (out []Commit) {
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	rp := v.store.repos[name]
	for _, c := range rp.history(rp.resolve(rev)) {
		out = append(out, *c)
	}
	return out
}

// Open returns the bytes of a file of a revision.
func (v views) Open(name, rev, path string) (*io.SectionReader, error) {
	e, ok := v.at(name, rev).Files[path]
	if !ok {
		return nil, fmt.Errorf("no file %s in %s at %s", path, name, rev)
	}
	return v.store.objects.open(e)
}

// ReadFile is Open for a file that fits in memory.
func (v views) ReadFile(name, rev, path string) ([]byte, error) {
	r, err := v.Open(name, rev, path)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Refs returns every ref of a repo (refs/heads/main, refs/tags/v1, …) with its commit.
func (v views) Refs(name string) map[string]string {
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	if rp := v.store.repos[name]; rp != nil {
		return maps.Clone(rp.refs)
	}
	return nil
}

// Visibility tells how a repo is shown now: private, and gated "", "auto" or "manual".
func (v views) Visibility(name string) (private bool, gated string) {
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	opts := v.store.mustRepo(name).opts
	return opts.Private, opts.Gated
}
