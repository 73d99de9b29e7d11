package hub

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"path"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/names"
)

// A RepoInfo is what a hub says about one commit of a model.
type RepoInfo struct {
	ID  string // the repo's current name, after renames
	SHA string // the commit, which everything else belongs to
	// Open says that everyone may read the repo: the hub states private: false and gated: false. A
	// member that's missing or has another form leaves it false.
	Open    bool
	Private bool       // the hub states private: true
	Gated   string     // "auto" or "manual" if the hub states that it's gated
	Files   []FileInfo // in the hub's order
	Absent  []string   // paths of files that can't be read, because the shared cache lacks them offline
	// Unlisted says that the shared cache has no list of the commit's files, so Files are only
	// those that were downloaded.
	Unlisted    bool
	PipelineTag string
	LibraryName string
	// LastModified is when the repo's newest commit was made; zero if the hub doesn't say.
	LastModified time.Time
}

// Name returns the repo's name without its namespace.
func (i *RepoInfo) Name() string { return path.Base(i.ID) }

// ByPath returns the files by their paths, as Tree does.
func (i *RepoInfo) ByPath() map[string]FileInfo {
	files := make(map[string]FileInfo, len(i.Files))
	for _, f := range i.Files {
		files[f.Path] = f
	}
	return files
}

// A FileInfo is one file of a commit. SHA256 is set for large (LFS) files, and is the hash of the
// content. BlobID is git's hash of a plain file's content, or of a large file's pointer.
type FileInfo struct {
	Path    string
	Size    int64
	SHA256  string
	BlobID  string
	XetHash string // of a file stored in Xet; only Tree sets it
}

// Hash returns the hash that the hub lists, or "": of a large file SHA-256, of a plain one git's.
func (f FileInfo) Hash() string { return cmp.Or(f.SHA256, f.BlobID) }

// File returns the reference to read a file of the commit.
func (i *RepoInfo) File(path string) (FileRef, bool) {
	at := slices.IndexFunc(i.Files, func(f FileInfo) bool { return f.Path == path })
	if at < 0 {
		return FileRef{}, false
	}
	return i.Files[at].Ref(i.ID, i.SHA), true
}

// Ref returns the reference to read the file. It leaves out the BlobID of a large file, which only
// hashes the file's pointer.
func (f FileInfo) Ref(repo, commit string) FileRef {
	ref := FileRef{Repo: repo, Commit: commit, Path: f.Path, Size: f.Size, SHA256: f.SHA256}
	if f.SHA256 == "" {
		ref.BlobID = f.BlobID
	}
	return ref
}

// A FileRef names one file of a pinned commit. ReadRange and Stream need Size. If SHA256 (large
// files) or BlobID (plain git files) is set, it and Size must match whatever the hub says.
type FileRef struct {
	Repo, Commit, Path string
	Size               int64
	SHA256, BlobID     string
	NoCache            bool // don't use the shared cache
}

func (f FileRef) String() string { return f.Path + " of " + f.Repo }

// Hash returns the expected etag, or "" if unknown.
func (f FileRef) Hash() string { return cmp.Or(f.SHA256, f.BlobID) }

// NewHash returns a hash of the kind that the ETag like is, git's or SHA-256, for a file of that
// size. If like is "", it's SHA-256.
func NewHash(like string, size int64) hash.Hash {
	if like == "" || names.IsSHA256(like) {
		return sha256.New()
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", size)
	return h
}

// isETag reports whether s is a hash by which hub and cache name a file's content.
func isETag(s string) bool { return names.IsSHA256(s) || names.IsBlob(s) }

// hashLike hashes data with the kind of hash that etag is. It returns any other etag
// unchanged, because that's no hash.
func hashLike(etag string, data []byte) string {
	if !isETag(etag) {
		return etag
	}
	h := NewHash(etag, int64(len(data)))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// checkPath refuses a file name that no repo should have. The error wraps ErrUnsafePath.
func checkPath(name string) error {
	if !names.IsListed(name) {
		return fmt.Errorf("%w: %.200q isn't a clean path below the repo's folder",
			ErrUnsafePath, name)
	}
	return nil
}

// checkSource refuses names that must not go into a URL or a path.
func checkSource(repo, commit, path string) error {
	if err := checkRepo(repo); err != nil {
		return err
	}
	if commit == "" {
		return fmt.Errorf("hub: read %s of %s: no commit given", path, repo)
	}
	return checkPath(path)
}
