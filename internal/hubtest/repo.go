package hubtest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// repo is one model repo. The lock of the store guards everything but the immutable commits.
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

// blobID is git's hash of a file: SHA-1 over a header and the content.
func blobID(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// pointer is the text that git stores in place of a large file.
func pointer(sha string, size int64) []byte {
	return fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", sha, size)
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

func (rp *repo) namespace() string {
	ns, _, _ := strings.Cut(rp.name, "/")
	return ns
}

// add appends c to a ref and returns its id.
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

// resolve turns a branch, tag, full ref or commit id into a commit, nil when there is none, or no repo.
func (rp *repo) resolve(rev string) *commit {
	if rp == nil {
		return nil
	}
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

// history lists c and its ancestors, newest first.
func (rp *repo) history(c *commit) (out []*commit) {
	for ; c != nil; c = rp.commits[c.parent] {
		out = append(out, c)
	}
	return out
}

func branchRef(branch string) string {
	if strings.HasPrefix(branch, "refs/") {
		return branch
	}
	return "refs/heads/" + branch
}
