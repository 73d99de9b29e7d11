package hubtest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// repo is one model repo. Everything but the immutable commits is guarded by
// Server.mu.
type repo struct {
	name    string // namespace/name
	opts    repoOptions
	created time.Time
	refs    map[string]string  // refs/heads/main → commit
	commits map[string]*commit // all of them, also unreachable ones
	holds   map[string]bool    // sha256 of the objects in its LFS store
	prs     []*pullRequest
	serial  int              // number of commits made, so that ids do not depend on time
	landed  map[string]entry // what the push folder holds
}

// commit is one immutable state of a repo.
type commit struct {
	oid, parent    string
	title, message string
	author         string
	date           time.Time
	files          map[string]entry
}

// entry is one file of a commit: content of a git file, or sha256 of a large one.
type entry struct {
	oid     string // git hash of the content, or of the pointer
	size    int64  // real size
	sha256  string // empty for a git file
	content []byte // of a git file
}

func (e entry) isLFS() bool { return e.sha256 != "" }

func gitEntry(content []byte) entry {
	return entry{oid: blobID(content), size: int64(len(content)), content: content}
}

func lfsEntry(sha string, size int64) entry {
	return entry{oid: blobID(pointer(sha, size)), size: size, sha256: sha}
}

func (rp *repo) namespace() string {
	ns, _, _ := strings.Cut(rp.name, "/")
	return ns
}

type repoOptions struct {
	Private  bool
	Gated    string // "", "auto" or "manual"
	Disabled bool
}

// RepoOption changes a repo of AddRepo.
type RepoOption func(*repoOptions)

// Private hides the repo from everyone but its owners.
func Private() RepoOption { return func(o *repoOptions) { o.Private = true } }

// Gated lets only users on the list read files; mode is "auto" or "manual".
func Gated(mode string) RepoOption { return func(o *repoOptions) { o.Gated = mode } }

// Disabled makes the hub refuse every access.
func Disabled() RepoOption { return func(o *repoOptions) { o.Disabled = true } }

// newRepo makes an empty repo with the hub's first commit. The caller holds s.mu.
func (s *Server) newRepo(name string, opts repoOptions) *repo {
	rp := &repo{
		name: name, opts: opts, created: s.cfg.clock(),
		refs: map[string]string{}, commits: map[string]*commit{}, holds: map[string]bool{},
	}
	first := map[string]entry{attributesFile: gitEntry([]byte(defaultAttributes))}
	rp.add(s.cfg.clock(), "refs/heads/main", &commit{title: "initial commit", author: "system", files: first})
	s.repos[name] = rp
	delete(s.renames, name)
	return rp
}

// add appends c to a ref and returns its id. The caller holds Server.mu.
func (rp *repo) add(now time.Time, ref string, c *commit) string {
	rp.serial++
	c.parent, c.date = rp.refs[ref], now
	h := sha1.New()
	fmt.Fprintf(h, "%s\x00%d\x00%s\x00%s\x00%s\x00", rp.name, rp.serial, c.parent, c.title, c.message)
	for _, p := range slices.Sorted(maps.Keys(c.files)) {
		fmt.Fprintf(h, "%s\x00%s\n", p, c.files[p].oid)
	}
	c.oid = hex.EncodeToString(h.Sum(nil))
	rp.commits[c.oid] = c
	rp.refs[ref] = c.oid
	return c.oid
}

// resolve turns a branch, tag, full ref or commit id into a commit, nil when
// there is none. The caller holds Server.mu.
func (rp *repo) resolve(rev string) *commit {
	if rev == "HEAD" {
		rev = "main"
	}
	for _, ref := range []string{rev, "refs/heads/" + rev, "refs/tags/" + rev} {
		if oid, ok := rp.refs[ref]; ok && strings.HasPrefix(ref, "refs/") {
			return rp.commits[oid]
		}
	}
	return rp.commits[rev]
}

// commitAt is resolve with the lock and the hub's error.
func (s *Server) commitAt(rp *repo, rev string) (*commit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := rp.resolve(rev)
	if c == nil {
		return nil, errRevisionNotFound(rev)
	}
	return c, nil
}

// AddRepo makes a repo (or replaces it) whose main branch holds files, large
// ones as LFS objects, and returns the commit. The contents are borrowed for
// the life of the server.
func (s *Server) AddRepo(name string, files map[string][]byte, opts ...RepoOption) string {
	var o repoOptions
	for _, opt := range opts {
		opt(&o)
	}
	s.mu.Lock()
	s.newRepo(name, o)
	s.mu.Unlock()
	return s.Push(name, "main", files)
}

// Push commits files on top of a branch, which starts empty when it is new,
// and returns the commit; a nil content deletes the file.
func (s *Server) Push(name, branch string, files map[string][]byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.mustRepo(name)
	rules := parseRules(string(files[attributesFile]), true)
	next := map[string]entry{}
	ref := branchRef(branch)
	if c := rp.resolve(branch); c != nil {
		next = maps.Clone(c.files)
		rp.refs[ref] = c.oid
		rules = append(parseRules(string(next[attributesFile].content), true), rules...)
	}
	for path, content := range files {
		if content == nil {
			delete(next, path)
			continue
		}
		next[path] = s.entryFor(rp, rules, path, content)
	}
	return rp.add(s.cfg.clock(), ref, &commit{title: "Upload files", author: rp.namespace(), files: next})
}

// entryFor stores a file as the hub's preupload would decide. The caller holds s.mu.
func (s *Server) entryFor(rp *repo, rules rules, path string, content []byte) entry {
	if !s.wantsLFS(rules, path, content[:min(len(content), 512)], int64(len(content))) {
		return gitEntry(content)
	}
	o := newObject(content)
	s.objects[o.sha256] = o
	rp.holds[o.sha256] = true
	return lfsEntry(o.sha256, o.size)
}

// AddGenerated commits one large file whose bytes are read from body when they
// are asked for; body must answer the same for ever and may be read from
// several goroutines. With an empty sha256 the body is read once to hash it.
// The repo is made when it does not exist.
func (s *Server) AddGenerated(name, path string, size int64, sha256 string, body io.ReaderAt) (string, error) {
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
		rp = s.newRepo(name, repoOptions{})
	}
	s.objects[sha256] = &object{sha256: sha256, size: size, body: body}
	rp.holds[sha256] = true
	files := maps.Clone(rp.resolve("main").files)
	files[path] = lfsEntry(sha256, size)
	return rp.add(s.cfg.clock(), "refs/heads/main", &commit{title: "Upload " + path, author: rp.namespace(), files: files}), nil
}

func (s *Server) mustRepo(name string) *repo {
	rp := s.repos[name]
	if rp == nil {
		panic("hubtest: no repo " + name)
	}
	return rp
}

func branchRef(branch string) string {
	if strings.HasPrefix(branch, "refs/") {
		return branch
	}
	return "refs/heads/" + branch
}
