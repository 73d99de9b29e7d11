package hub

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/names"
)

// RepoInfo is what a hub says about one commit of a model.
type RepoInfo struct {
	ID          string // the repo's present name, after renames
	SHA         string // the commit; everything else is pinned to it
	Private     bool
	Gated       string     // "", "auto" or "manual"
	Files       []FileInfo // in the hub's order
	PipelineTag string
	LibraryName string
}

// FileInfo is one file of a commit. SHA256 is set for large (LFS) files, and is the hash of the
// content; BlobID is git's hash of a plain file's content, or of a large file's pointer.
type FileInfo struct {
	Path    string
	Size    int64
	SHA256  string
	BlobID  string
	XetHash string // of a file that the hub stores in Xet; only Tree tells it
}

// File is what the file is known by.
func (f FileInfo) File() names.File {
	return names.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256}
}

// File gives the reference by which a file of the commit is read.
func (i *RepoInfo) File(path string) (FileRef, bool) {
	at := slices.IndexFunc(i.Files, func(f FileInfo) bool { return f.Path == path })
	if at < 0 {
		return FileRef{}, false
	}
	return i.Files[at].Ref(i.ID, i.SHA), true
}

// Ref gives the reference by which the file is read. The BlobID of a large file
// is left out, because it is only the hash of the file's pointer.
func (f FileInfo) Ref(repo, commit string) FileRef {
	ref := FileRef{Repo: repo, Commit: commit, Path: f.Path, Size: f.Size, SHA256: f.SHA256}
	if f.SHA256 == "" {
		ref.BlobID = f.BlobID
	}
	return ref
}

// FileRef names one file of a pinned commit. Size is required for ReadRange and Stream; SHA256
// (large files) or BlobID (plain git files), if given, must match the hub's word at every look, and
// so must Size beside one of them.
type FileRef struct {
	Repo, Commit, Path string
	Size               int64
	SHA256, BlobID     string
	NoCache            bool // do not look into the shared cache
}

func (f FileRef) String() string { return f.Path + " of " + f.Repo }

// hash is the etag that the hub should give for the file, "" if unknown.
func (f FileRef) hash() string { return cmp.Or(f.SHA256, f.BlobID) }

// NewHash begins the hash of a file of a size in the way in which the ETag like was made: git's, or
// sha256, also if like is "".
func NewHash(like string, size int64) hash.Hash {
	if like == "" || names.IsSHA256(like) {
		return sha256.New()
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", size)
	return h
}

// isETag says whether s is a hash by which hub and cache name a file's content.
func isETag(s string) bool { return names.IsSHA256(s) || names.IsCommit(s) }

// hashLike hashes data in the way in which etag was made. An etag of another form covers nothing
// and is given back.
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
		return fmt.Errorf("%w: %.200q is not a clean path below the repo's folder",
			wire.ErrUnsafePath, name)
	}
	return nil
}

// checkSource refuses names that must not go into a URL or a path.
func checkSource(repo, commit, path string) error {
	if err := wire.CheckRepo(repo); err != nil {
		return err
	}
	if commit == "" {
		return fmt.Errorf("hub: read %s of %s: no commit given", path, repo)
	}
	return checkPath(path)
}
