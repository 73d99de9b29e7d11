package hubtest

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"strings"
	"sync"
)

// store holds the repos. Its exported methods, which fill a server and read it, take the lock. The
// others expect their caller to hold it.
type store struct {
	cfg    *config
	folder pushFolder // "" without WithPushDir

	mu      sync.Mutex
	objects map[string]*object // large files, by sha256
	repos   map[string]*repo
	renames map[string]string // old name → new name

	datasets map[string]repoOptions
}

func newStore(cfg *config) *store {
	return &store{
		cfg: cfg, folder: pushFolder(cfg.pushDir),
		objects: map[string]*object{}, repos: map[string]*repo{}, renames: map[string]string{},
		datasets: map[string]repoOptions{},
	}
}

// AddRepo makes a repo (or replaces it) whose main branch holds files, large ones as LFS objects,
// and returns the commit. The contents are borrowed for the life of the server.
func (s *store) AddRepo(name string, files map[string][]byte, opts ...RepoOption) string {
	s.mu.Lock()
	rp := s.newRepo(name)
	for _, opt := range opts {
		opt(&rp.opts)
	}
	s.mu.Unlock()
	return s.Push(name, "main", files)
}

// AddDataset makes a data set (or replaces it). The Hub says who may see it, and nothing else.
func (s *store) AddDataset(name string, opts ...RepoOption) {
	var o repoOptions
	for _, opt := range opts {
		opt(&o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.datasets[name] = o
}

// newRepo makes an empty repo with the hub's first commit.
func (s *store) newRepo(name string) *repo {
	rp := &repo{
		name: name, created: s.cfg.clock(), long: s.cfg.LongCommits,
		refs: map[string]string{}, commits: map[string]*Commit{}, holds: map[string]bool{},
		rows: map[string]File{},
	}
	first := map[string]File{attributesFile: gitFile(defaultAttributes)}
	rp.add(s.cfg.clock(), "refs/heads/main", &Commit{Title: "initial commit", Files: first})
	s.repos[name] = rp
	delete(s.renames, name)
	return rp
}

// Push commits files on top of a branch, which starts empty when it is new, and returns the commit;
// a nil content deletes the file.
func (s *store) Push(name, branch string, files map[string][]byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rp, ref := s.mustRepo(name), branchRef(branch)
	next := map[string]File{}
	if c := rp.resolve(branch); c != nil {
		next = maps.Clone(c.Files)
		rp.refs[ref] = c.OID
	}
	for path, content := range files {
		switch {
		case content == nil:
			delete(next, path)
		case s.cfg.wantsLFS(path, content[:min(len(content), 512)], int64(len(content))):
			o := newObject(content)
			s.objects[o.sha256] = o
			rp.holds[o.sha256] = true
			next[path] = largeFile(o.sha256, o.size)
		default:
			next[path] = gitFile(string(content))
		}
	}
	return rp.add(s.cfg.clock(), ref, &Commit{Title: "Upload files", Files: next})
}

// AddGenerated commits one large file whose bytes are read from body when they are asked for; body
// must answer the same for ever and may be read from several goroutines. With an empty sha256 the
// body is read once to hash it; without a body the bytes count as dropped, as by [WithDropUploads].
// The repo is made when it does not exist.
func (s *store) AddGenerated(name, path string, size int64, sha256 string,
	body io.ReaderAt) (string, error) {
	if sha256 == "" {
		var err error
		if sha256, err = hashBody(body, size); err != nil {
			return "", fmt.Errorf("hash generated %s: %w", path, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.repos[name]
	if rp == nil {
		rp = s.newRepo(name)
	}
	s.objects[sha256] = &object{sha256: sha256, size: size, body: body}
	rp.holds[sha256] = true
	files := maps.Clone(rp.resolve("main").Files)
	files[path] = largeFile(sha256, size)
	return rp.add(s.cfg.clock(), "refs/heads/main",
		&Commit{Title: "Upload " + path, Files: files}), nil
}

// mustRepo finds a repo for a test, which is wrong about the name when there is none.
func (s *store) mustRepo(name string) *repo {
	rp := s.repos[name]
	if rp == nil {
		panic("hubtest: no repo " + name)
	}
	return rp
}

// Configure changes visibility or gate of an existing repo.
func (s *store) Configure(name string, opts ...RepoOption) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, opt := range opts {
		opt(&s.mustRepo(name).opts)
	}
}

// Rename moves a repo; the old name answers with redirects from then on.
func (s *store) Rename(from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rename(from, to)
}

func (s *store) rename(from, to string) {
	rp := s.mustRepo(from)
	delete(s.repos, from)
	delete(s.renames, to)
	rp.name = to
	s.repos[to] = rp
	s.renames[from] = to
	s.folder.move(from, to)
}

// renamed says where a request for an old repo name belongs, with a relative address as the hub
// does.
func (s *store) renamed(u *url.URL) (location string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for from, to := range s.renames {
		for _, prefix := range []string{"/api/models/", "/api/resolve-cache/models/", "/"} {
			rest, ok := strings.CutPrefix(u.EscapedPath(), prefix+from)
			if !ok || rest != "" && rest[0] != '/' && !strings.HasPrefix(rest, ".git/") {
				continue
			}
			location = prefix + to + rest
			if u.RawQuery != "" {
				location += "?" + u.RawQuery
			}
			return location, true
		}
	}
	return "", false
}

// RemoveRepo deletes a repo as its owner would. A new repo of that name does not hold what the old
// one had uploaded.
func (s *store) RemoveRepo(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustRepo(name)
	delete(s.repos, name)
}

// hold stores an uploaded object, once, and adds it to the repo of that name, if the repo still
// exists.
func (s *store) hold(name string, o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.objects[o.sha256]; old == nil || old.body == nil {
		s.objects[o.sha256] = o
	}
	if rp := s.repos[name]; rp != nil {
		rp.holds[o.sha256] = true
	}
}

// CreateBranch points a new branch at a revision.
func (s *store) CreateBranch(name, branch, rev string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.mustRepo(name)
	c := rp.resolve(rev)
	if c == nil {
		panic("hubtest: no revision " + rev + " of " + name)
	}
	rp.refs[branchRef(branch)] = c.OID
}

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
	for c := rp.resolve(rev); c != nil; c = rp.commits[c.Parent] {
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

// Refs returns every ref of a repo (refs/heads/main, …) with its commit.
func (s *store) Refs(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mustRepo(name).refs)
}

// IsPrivate reports whether a repo is private now.
func (s *store) IsPrivate(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mustRepo(name).opts.Private
}
