package disk

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
	"sync"

	"github.com/gofrs/flock"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Kinds of folders, as people know them.
const (
	Output = "output folder"
	Work   = "work folder"
)

// A Folder is open and locked. Names in it are relative and have slashes. Its methods may be called
// by several goroutines.
type Folder struct {
	Root *os.Root
	// the folder in it for all that is not the result: lock, journals, spools and unfinished files
	State *os.Root

	// Known has the version of every file that may be replaced or removed, but for those of the
	// state, which all are the run's. What else is there, or has changed since, stays, and InTheWay
	// makes the error.
	Known    map[string]string
	InTheWay func(name string) error

	kind string
	perm fs.FileMode
	lock *flock.Flock
	mu   sync.Mutex
}

// Error says that a folder can't be used: it can't be made or written, another run has it, or
// others may change what is there.
type Error struct {
	Kind, Folder string
	Err          error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Kind, e.Folder, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Unusable is an error of the folder as a whole.
func (f *Folder) Unusable(err error) error { return &Error{f.kind, f.Root.Name(), err} }

// openTries bounds how often a folder is opened that changes meanwhile.
const openTries = 100

// OpenFolder makes a folder, locks it, and removes files that killed runs have not finished. New files
// get perm, less what the umask takes. What keeps it from that is an *Error: of a folder that
// another run has, it wraps ErrLocked; of one whose state is a link, that belongs to somebody else,
// or that others may write to, an *UnsafeError.
func OpenFolder(kind, dir string, perm fs.FileMode) (f *Folder, err error) {
	for range openTries { // a run that ends just now may take away what was there
		if f, err = open(kind, dir, perm); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if inUse(err) {
		err = ErrLocked
	}
	if err != nil {
		return nil, &Error{kind, dir, err}
	}
	return f, nil
}

func open(kind, dir string, perm fs.FileMode) (*Folder, error) {
	if err := os.MkdirAll(dir, forFolders(perm)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{Root: root, Known: map[string]string{}, kind: kind, perm: perm}
	if err = f.acquire(); err == nil {
		err = removeTemporary(f.State)
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
	if err := f.Root.Mkdir(names.StateDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	err := f.checkOwner(names.StateDir)
	if err == nil {
		f.State, err = f.Root.OpenRoot(names.StateDir)
	}
	if err == nil {
		err = f.checkState()
	}
	if err == nil {
		err = f.takeLock()
	}
	return err
}

// checkState refuses a state with something else than files and folders of a single name: what a
// run writes there would land elsewhere.
func (f *Folder) checkState() error {
	return fs.WalkDir(f.State.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // another run has removed it just now
		case err != nil || info.IsDir():
			return err
		case !info.Mode().IsRegular() || links(info) > 1:
			return &UnsafeError{filepath.Join(f.State.Name(), name),
				"is a link, or no regular file"}
		case name == lockName && info.Size() > 0:
			return &UnsafeError{filepath.Join(f.State.Name(), name), "is no lock of this program"}
		}
		return nil
	})
}

// UnsafeError says why a folder can't be trusted to take what is written to it.
type UnsafeError struct{ Path, Why string }

func (e *UnsafeError) Error() string { return e.Path + " " + e.Why }

// checkOwner refuses a folder that another user has, or may write to. Where the file system keeps
// neither owners nor modes, which a new file there shows, everybody who has access to the disk
// could do that.
func (f *Folder) checkOwner(name string) error {
	info, err := f.lstatFolder(name)
	if err != nil || whose(info) == "" {
		return err
	}
	mine, err := f.sample()
	if err == nil && whose(mine) == "" {
		return &UnsafeError{f.path(name), whose(info)}
	}
	return err
}

// sample describes a new file of this user.
func (f *Folder) sample() (fs.FileInfo, error) {
	file, err := CreateIn(f.Root, ".", ".", 0o600, 0)
	if err != nil {
		return nil, err
	}
	defer file.Cleanup()
	return file.h.Stat()
}

// Lstat describes a file. A folder on the way to it that is a link is an *UnsafeError.
func (f *Folder) Lstat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &UnsafeError{name, "is no name of a file in a folder"}
	}
	if dir := path.Dir(name); dir != "." {
		if _, err := f.lstatFolder(dir); err != nil {
			return nil, err
		}
	}
	info, err := f.Root.Lstat(name)
	if err != nil {
		return nil, wrap("lstat", f.path(name), err)
	}
	return info, nil
}

// lstatFolder describes a folder in this one. Anything else is an *UnsafeError.
func (f *Folder) lstatFolder(name string) (fs.FileInfo, error) {
	info, err := f.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &UnsafeError{f.path(name), "is a link, or no folder"}
	}
	return info, err
}

// path is where a file lies on this machine.
func (f *Folder) path(name string) string { return filepath.Join(f.Root.Name(), name) }

// Version tells of a file whether it is another than before, or was changed: its size, mode and
// time.
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

// Create starts a file of a known size, and makes the folders that it is to lie in. It only takes
// the place of what is known.
func (f *Folder) Create(name string, size int64) (*File, error) {
	if _, err := f.Lstat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := f.Root.MkdirAll(path.Dir(name), forFolders(f.perm)); err != nil {
		return nil, wrap("mkdir", f.path(path.Dir(name)), err)
	}
	file, err := CreateIn(f.Root, name, names.StateDir, f.perm, size)
	if err == nil {
		file.naming = func(rename func() error) error { return f.replace(name, rename) }
	}
	return file, err
}

// Remove removes a file, if it is there. Only what is known goes.
func (f *Folder) Remove(name string) error {
	return f.replace(name, func() error {
		if err := f.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrap("unlink", f.path(name), err)
		}
		return nil
	})
}

// replace does away with what has a name, if it is known, and knows what has the name then.
func (f *Folder) replace(name string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := f.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && !strings.HasPrefix(name, names.StateDir+"/") &&
		f.Known[name] != Version(info) {
		return f.InTheWay(name)
	}
	if err = do(); err != nil {
		return err
	}
	f.Known[name] = ""
	if info, err = f.Lstat(name); err == nil {
		f.Known[name] = Version(info)
	}
	return nil
}

// Release gives the lock back and leaves the state to the next run.
func (f *Folder) Release() error {
	return errors.Join(f.lock.Close(), f.State.Close(), f.Root.Close())
}

// Leave gives the lock back, and removes the folder of the state if nothing is left in it.
func (f *Folder) Leave() (err error) {
	if f.lock != nil {
		err = f.removeLock()
	}
	if f.State != nil {
		err = errors.Join(err, f.State.Close())
		// not if a former run has left something, or somebody else has come
		_ = f.Root.Remove(names.StateDir)
	}
	return errors.Join(err, f.Root.Close())
}

// forFolders lets everybody look into a folder who may read the files in it, and only the user
// change it.
func forFolders(files fs.FileMode) fs.FileMode { return 0o700 | files&0o044 | files>>2&0o011 }
