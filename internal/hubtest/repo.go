package hubtest

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
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
	maker   string             // the user who created it by a request
	refs    map[string]string  // refs/heads/main → commit
	commits map[string]*Commit // all of them, also unreachable ones
	holds   map[string]bool    // sha256 of the objects in its LFS store
	rows    map[string]File    // what a way of the server remembers of a path
	serial  int                // number of commits made, so that ids do not depend on time
	long    bool               // ids of commits
}

// Commit is one immutable state of a repo.
type Commit struct {
	OID, Parent    string
	Title, Message string
	Date           time.Time
	Files          map[string]File
}

// File is one file of a commit: a git file, whose content it holds, or a large one, which is an
// object.
type File struct {
	Size    int64
	SHA256  string // of a large file, else empty
	BlobID  string // git hash of the content, or of the LFS pointer
	content string // of a git file
}

func (e File) isLFS() bool { return e.SHA256 != "" }

func gitFile(content string) File {
	return File{BlobID: blobID([]byte(content)), Size: int64(len(content)), content: content}
}

func largeFile(sha string, size int64) File {
	return File{BlobID: blobID([]byte(pointer(sha, size))), Size: size, SHA256: sha}
}

// blobID is git's hash of a file: SHA-1 over a header and the content.
func blobID(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// pointer returns the text that git stores instead of a large file.
func pointer(sha string, size int64) string {
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", sha,
		size)
}

type repoOptions struct {
	Private  bool
	Gated    string // "", "auto" or "manual"
	Disabled bool
	says     func(info map[string]any)
}

// gate returns how the hub writes the gate.
func (o *repoOptions) gate() any {
	if o.Gated == "" {
		return false
	}
	return o.Gated
}

// RepoOption changes a repo of AddRepo.
type RepoOption func(*repoOptions)

// Private hides the repo from everyone but its owners.
func Private() RepoOption { return func(o *repoOptions) { o.Private = true } }

// Public undoes Private.
func Public() RepoOption { return func(o *repoOptions) { o.Private = false } }

// Gated lets only users on the list read files; mode is "auto" or "manual".
func Gated(mode string) RepoOption { return func(o *repoOptions) { o.Gated = mode } }

// Described changes what the Hub says about the repo, as Hubs of other versions do. It doesn't change
// who may read it.
func Described(change func(info map[string]any)) RepoOption {
	return func(o *repoOptions) { o.says = change }
}

// Disabled lets no one see or change the repo, as after a takedown.
func Disabled() RepoOption { return func(o *repoOptions) { o.Disabled = true } }

func (rp *repo) namespace() string {
	ns, _, _ := strings.Cut(rp.name, "/")
	return ns
}

// add appends c to a ref and returns its id.
func (rp *repo) add(now time.Time, ref string, c *Commit) string {
	rp.serial++
	c.Parent, c.Date = rp.refs[ref], now
	h := sha1.New()
	if rp.long {
		h = sha256.New()
	}
	fmt.Fprintf(h, "%s\x00%d\x00%s\x00%s\x00%s\x00", rp.name, rp.serial, c.Parent, c.Title,
		c.Message)
	for _, p := range slices.Sorted(maps.Keys(c.Files)) {
		fmt.Fprintf(h, "%s\x00%s\n", p, c.Files[p].BlobID)
	}
	c.OID = hex.EncodeToString(h.Sum(nil))
	rp.commits[c.OID] = c
	rp.refs[ref] = c.OID
	return c.OID
}

// resolve returns the commit of a branch, full ref, or commit id, or nil.
func (rp *repo) resolve(rev string) *Commit {
	if rp == nil {
		return nil
	}
	if rev == "HEAD" {
		rev = "main"
	}
	return rp.commits[cmp.Or(rp.refs[branchRef(rev)], rev)]
}

func branchRef(branch string) string {
	if strings.HasPrefix(branch, "refs/") {
		return branch
	}
	return "refs/heads/" + branch
}
