// Package folder works on one folder that a user has named: it locks the folder against other runs, refuses what could take a write
// elsewhere, and writes through the open folder, which no link leads out of. It does not know whose a file is.
package folder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/filelock"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/streams"
)

const lockName = "lock"

// A Folder is open and locked. Names in it are relative and have slashes. Its methods may be called by several goroutines.
type Folder struct {
	Root  *os.Root
	State *os.Root // the folder in it for all that is not the result: lock, journals, spools and unfinished files

	perm fs.FileMode
	lock *filelock.Lock
}

// Open makes a folder, locks it, and removes files that killed runs have not finished. New files get perm, less what the umask takes.
// A folder whose state is a link, that belongs to somebody else, or that others may write to, is an *UnsafeError.
func Open(dir string, perm fs.FileMode) (f *Folder, err error) {
	for range 10 { // another run that ends just now may take away the folders that were there
		if f, err = open(dir, perm); !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return f, err
}

func open(dir string, perm fs.FileMode) (*Folder, error) {
	if err := os.MkdirAll(dir, forFolders(perm)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{Root: root, perm: perm}
	if err = f.acquire(); err == nil {
		err = atomicfile.RemoveTemporary(f.State)
	}
	if err != nil {
		return nil, errors.Join(err, f.Leave())
	}
	return f, nil
}

// acquire makes the folder of the state, and locks it.
func (f *Folder) acquire() error {
	if err := f.checkOwner("."); err != nil {
		return err
	}
	if err := f.Root.Mkdir(metadata.StateDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	err := f.checkOwner(metadata.StateDir)
	if err == nil {
		f.State, err = f.Root.OpenRoot(metadata.StateDir)
	}
	if err == nil {
		err = f.checkState()
	}
	if err == nil {
		err = f.takeLock()
	}
	return err
}

// takeLock locks the folder. The lock may turn out to be in another folder, if another run has just removed ours.
func (f *Folder) takeLock() (err error) {
	name := filepath.Join(f.State.Name(), lockName)
	if f.lock, err = filelock.Acquire(name); err != nil {
		return err
	}
	taken, err := os.Lstat(name)
	if err != nil {
		return err
	}
	ours, err := f.State.Lstat(lockName)
	if err == nil && !os.SameFile(taken, ours) {
		err = fs.ErrNotExist
	}
	return err
}

// checkState refuses a state with something else than files and folders of a single name: what a run writes there would land elsewhere.
func (f *Folder) checkState() error {
	return fs.WalkDir(f.State.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another run has removed it just now
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !info.Mode().IsRegular() || links(info) > 1:
			return &UnsafeError{filepath.Join(f.State.Name(), name), "is a link, or no regular file"}
		case name == lockName && info.Size() > 0:
			return &UnsafeError{filepath.Join(f.State.Name(), name), "is no lock of this program"}
		}
		return nil
	})
}

// UnsafeError says why a folder can't be trusted to take what is written to it.
type UnsafeError struct{ Path, Why string }

func (e *UnsafeError) Error() string { return e.Path + " " + e.Why }

// checkOwner refuses a folder that another user has, or may write to. Where the file system keeps neither owners nor modes, which a
// new file there shows, everybody who has access to the disk could do that.
func (f *Folder) checkOwner(name string) error {
	info, err := f.Root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &UnsafeError{filepath.Join(f.Root.Name(), name), "is a link, or no folder"}
	}
	if whose(info) == "" {
		return nil
	}
	mine, err := f.sample()
	if why := whose(info); err == nil && whose(mine) == "" {
		return &UnsafeError{filepath.Join(f.Root.Name(), name), why}
	}
	return err
}

// sample describes a new file of this user.
func (f *Folder) sample() (fs.FileInfo, error) {
	name := atomicfile.TempName()
	file, err := f.Root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	return info, errors.Join(err, file.Close(), f.Root.Remove(name))
}

// Lstat describes a file. A folder on the way to it that is a link is an *UnsafeError.
func (f *Folder) Lstat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &UnsafeError{name, "is no name of a file in a folder"}
	}
	if dir := path.Dir(name); dir != "." {
		info, err := f.Lstat(dir)
		if err == nil && !info.IsDir() {
			err = &UnsafeError{filepath.Join(f.Root.Name(), dir), "is a link, or no folder"}
		}
		if err != nil {
			return nil, err
		}
	}
	return f.Root.Lstat(name)
}

// Version tells of a file whether it is another than before, or was changed: its size, mode and time.
func Version(info fs.FileInfo) string {
	return fmt.Sprint(info.Size(), info.Mode(), info.ModTime().UnixNano())
}

// Sum gives the sha256 of a regular file of a size; "" if there is none.
func (f *Folder) Sum(ctx context.Context, name string, size int64) string {
	return f.Hash(ctx, name, size, sha256.New())
}

// Hash gives another hash of it.
func (f *Folder) Hash(ctx context.Context, name string, size int64, h hash.Hash) string {
	if info, err := f.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() != size {
		return ""
	}
	file, err := f.Root.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	if _, err := streams.Copy(ctx, h, io.NewSectionReader(file, 0, size)); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Create starts a file of a known size, and makes the folders that it is to lie in.
func (f *Folder) Create(name string, size int64) (*atomicfile.File, error) {
	if _, err := f.Lstat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := f.Root.MkdirAll(path.Dir(name), forFolders(f.perm)); err != nil {
		return nil, f.located(err)
	}
	return atomicfile.CreateIn(f.Root, name, metadata.StateDir, f.perm, size)
}

// Remove removes a file, if it is there.
func (f *Folder) Remove(name string) error {
	_, err := f.Lstat(name)
	if err == nil {
		err = f.Root.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.located(err)
}

// located is an error with the whole path, which an open folder leaves out.
func (f *Folder) located(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: strings.TrimSuffix(e.Op, "at"), Path: filepath.Join(f.Root.Name(), e.Path), Err: e.Err}
	}
	return err
}

// Release gives the lock back and leaves the state to the next run.
func (f *Folder) Release() error {
	return errors.Join(f.lock.Release(), f.State.Close(), f.Root.Close())
}

// Leave gives the lock back, and removes the folder of the state if nothing is left in it.
func (f *Folder) Leave() (err error) {
	if f.lock != nil {
		err = f.lock.Remove()
	}
	if f.State != nil {
		err = errors.Join(err, f.State.Close())
		_ = f.Root.Remove(metadata.StateDir) // not if a former run has left something, or somebody else has come
	}
	return errors.Join(err, f.Root.Close())
}

// forFolders lets everybody look into a folder who may read the files in it, and only the user change it.
func forFolders(files fs.FileMode) fs.FileMode { return 0o700 | files&0o044 | files>>2&0o011 }
