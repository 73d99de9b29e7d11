package hub

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// FileRef names one file of a pinned commit. Size is required for ReadRange and Stream; SHA256 (large files) or BlobID
// (plain git files), if given, must match the hub's word at every look, and so must Size beside one of them.
type FileRef struct {
	Repo, Commit, Path string
	Size               int64
	SHA256, BlobID     string
	NoCache            bool // do not look into the shared cache
}

func (f FileRef) String() string { return f.Path + " of " + f.Repo }

// hash is the etag that the hub should give for the file, "" if unknown.
func (f FileRef) hash() string { return cmp.Or(f.SHA256, f.BlobID) }

// NewHash begins the hash by which hub and cache name the file. Its hexadecimal sum is SHA256, or BlobID if that is empty.
func (f FileRef) NewHash() hash.Hash {
	if f.SHA256 != "" {
		return sha256.New()
	}
	return newGitHash(f.Size)
}

// newGitHash begins the hash by which git names a file's content.
func newGitHash(size int64) hash.Hash {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", size)
	return h
}

func gitBlobHash(data []byte) string {
	h := newGitHash(int64(len(data)))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// isETag says whether s is a hash by which hub and cache name a file's content.
func isETag(s string) bool { return isSHA256(s) || isCommit(s) }

// hashLike hashes data in the way in which etag was made, told by its length. An etag of another form covers nothing and
// is given back.
func hashLike(etag string, data []byte) string {
	switch {
	case isSHA256(etag):
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:])
	case isCommit(etag):
		return gitBlobHash(data)
	}
	return etag
}

// checkSource refuses names that must not go into a URL or a path.
func checkSource(repo, commit, path string) error {
	if err := checkRepo(repo); err != nil {
		return err
	}
	if commit == "" {
		return fmt.Errorf("hub: read %s of %s: no commit given", path, repo)
	}
	return ValidPath(path)
}
