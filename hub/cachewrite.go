package hub

import (
	"context"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/filelock"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// CacheFile is a file on its way into the shared cache. It appears there, for the Python client too, only when all its
// bytes have arrived and have the hash that the reference names. Bytes written before an error or a kill are kept, and
// the next CacheCreate goes on behind them. It is not for concurrent use.
type CacheFile struct {
	cache *sharedCache
	ref   FileRef
	file  *atomicfile.File
	lock  *filelock.Lock // nil: another process writes the file too, so that this one is dropped unless it is committed
	hash  hash.Hash
	n     int64
	wrong bool
}

// CacheCreate begins a file of the shared cache, or goes on with it; the caller writes its bytes from Offset on in order,
// defers Cleanup and ends with Commit. The reference needs its hash.
func (c *Client) CacheCreate(ctx context.Context, f FileRef) (*CacheFile, error) {
	if err := checkSource(f.Repo, f.Commit, f.Path); err != nil {
		return nil, err
	}
	if c.cache.dir == "" || !isCommit(f.Commit) || !isSHA256(f.SHA256) && !isCommit(f.BlobID) {
		return nil, c.t.errorf("cache "+f.String(), ErrCorrupt, "no cache is set, or the file's commit or hash is not known")
	}
	w := &CacheFile{cache: c.cache, ref: f, hash: f.NewHash()}
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// open takes the same lock as the Python client, and the bytes that an earlier run has left. Without the lock the file
// gets a name that nobody else uses.
func (w *CacheFile) open(ctx context.Context) error {
	folder := w.cache.folder(w.ref.Repo)
	blob := filepath.Join(folder, "blobs", w.ref.hash())
	locks := filepath.Join(w.cache.dir, ".locks", filepath.Base(folder))
	for _, dir := range []string{filepath.Dir(blob), locks} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	var err error
	if w.lock, err = filelock.Acquire(filepath.Join(locks, w.ref.hash()+".lock")); err != nil {
		w.file, err = atomicfile.Create(blob, w.ref.Size)
		return err
	}
	part := blob + ".df11-part"
	if w.file, w.n, err = atomicfile.Resume(blob, part, w.ref.Size); err == nil && w.n > w.ref.Size {
		w.file.Cleanup()
		w.file, w.n, err = atomicfile.Resume(blob, part, w.ref.Size)
	}
	if err != nil {
		w.release()
		return err
	}
	if _, err := streams.Copy(ctx, w.hash, io.NewSectionReader(w.file, 0, w.n)); err != nil {
		w.Cleanup()
		return err
	}
	return nil
}

// Offset is the number of bytes that are there: where the caller begins.
func (w *CacheFile) Offset() int64 { return w.n }

func (w *CacheFile) release() {
	if w.lock != nil {
		_ = w.lock.Release()
		w.lock = nil
	}
}

// Write adds the next bytes of the file.
func (w *CacheFile) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.hash.Write(p[:n])
	w.n += int64(n)
	return n, err
}

// Cleanup ends a file that is not committed; it may always be deferred. The bytes written so far stay for the next
// CacheCreate, unless they were found to be wrong.
func (w *CacheFile) Cleanup() {
	if w.lock == nil || w.wrong || w.n == 0 {
		w.file.Cleanup()
	} else {
		w.file.Leave()
	}
	w.release()
}

// Commit checks size and hash, and makes the file appear in its snapshot. It takes the place of a damaged copy by rename.
func (w *CacheFile) Commit() error {
	if got := hex.EncodeToString(w.hash.Sum(nil)); w.n != w.ref.Size || got != w.ref.hash() {
		w.wrong = w.n >= w.ref.Size
		return w.cache.t.errorf("cache "+w.ref.String(), ErrCorrupt, "%d bytes with hash %s, expected %d with %s", w.n, got, w.ref.Size, w.ref.hash())
	}
	if err := w.file.Commit(w.ref.Size); err != nil {
		return err
	}
	return w.cache.link(w.ref)
}

// link puts a blob into its snapshot: as a relative link, or as the file itself where links cannot be made.
func (s *sharedCache) link(f FileRef) error {
	folder := s.folder(f.Repo)
	blob := filepath.Join(folder, "blobs", f.hash())
	name := filepath.Join(folder, "snapshots", f.Commit, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	target, err := filepath.Rel(filepath.Dir(name), blob)
	if err != nil {
		return err
	}
	if old, err := os.Readlink(name); err != nil || old != target {
		if err := relink(target, name); err != nil { // links cannot be made here
			if err := os.Rename(blob, name); err != nil {
				return err
			}
		}
	}
	for _, p := range []string{blob, name} {
		if found, err := filepath.EvalSymlinks(p); err == nil {
			s.damaged.Delete(found)
		}
	}
	return nil
}

// relink makes a symbolic link, in place of whatever has its name.
func relink(target, name string) error {
	err := os.Symlink(target, name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	fresh := name + ".df11-link"
	_ = os.Remove(fresh) // of a run that was killed
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, name)
}
