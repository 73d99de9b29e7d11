package disk

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Kinds of folders, in words for users.
const (
	Output = "output folder"
	Work   = "work folder"
)

// A Folder is an open, locked folder. Names in it are relative and have slashes. Goroutines may
// share it.
type Folder struct {
	Root *os.Root
	// the folder inside for everything but the result: lock, journals, spools, and unfinished files
	State *os.Root

	// Versions has the version of every file that may be replaced or removed, except for the
	// state's files, which all belong to the run. Other files, and files that have changed, stay,
	// and InTheWay returns the error.
	Versions map[string]string
	InTheWay func(name string) error

	// Unlocked says that the file system has no locks, so nothing keeps another run out.
	Unlocked bool

	readOnly error // why the folder can't be written to, or nil

	kind string
	made bool // this run made Root, or an earlier one that left its state there
	perm fs.FileMode
	lock *flock.Flock
	mu   sync.Mutex
}

// Error reports that a folder can't be used: it can't be created or written, another run uses it,
// or others may change its contents.
type Error struct {
	Kind, Folder string
	Err          error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Kind, e.Folder, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Unusable returns an error about the folder as a whole.
func (f *Folder) Unusable(err error) error { return &Error{f.kind, f.Root.Name(), err} }

// openTries limits how often open is repeated while the folder changes.
const openTries = 100

// OpenFolder creates and locks a folder, and removes files that killed runs didn't finish. New
// files get perm, minus the umask. Errors are an *Error. If another run uses the folder, it wraps
// ErrLocked. If the folder's state is a link, belongs to someone else, or may be written to by
// others, it wraps an *UnsafeError.
func OpenFolder(kind, dir string, perm fs.FileMode) (f *Folder, err error) {
	for range openTries { // a run that is just ending may remove what was there
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

// OpenOrRead is OpenFolder, but it also opens a folder that exists and can't be written to. That
// one isn't locked, its state is a new folder for temporary files, and [Folder.ReadOnly] returns an
// error, as every change of it does.
func OpenOrRead(kind, dir string, perm fs.FileMode) (*Folder, error) {
	f, err := OpenFolder(kind, dir, perm)
	if !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	f = &Folder{Versions: map[string]string{}, kind: kind, perm: perm, readOnly: err}
	state := ""
	if f.Root, err = os.OpenRoot(dir); err != nil {
		return nil, f.readOnly
	}
	if state, err = os.MkdirTemp("", tempPrefix); err == nil {
		f.State, err = os.OpenRoot(state)
	}
	if err != nil {
		return nil, errors.Join(f.readOnly, f.Close())
	}
	return f, nil
}

// ReadOnly returns the error that says why the folder can't be written to; nil if it can.
func (f *Folder) ReadOnly() error { return f.readOnly }

func open(kind, dir string, perm fs.FileMode) (*Folder, error) {
	_, err := os.Lstat(dir)
	made := err != nil
	if err := os.MkdirAll(dir, forFolders(perm)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{Root: root, Versions: map[string]string{}, kind: kind, perm: perm, made: made}
	if err = f.acquire(); err == nil {
		err = f.mark()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	removeTemporary(f.State, 0)
	return f, nil
}

// madeName is the file of the state that says that a run has made the folder, so that a later run
// may remove it.
const madeName = "made"

// mark adds that file if this run has made the folder, and else looks for one of an earlier run.
func (f *Folder) mark() error {
	if !f.made {
		_, err := f.State.Lstat(madeName)
		f.made = err == nil
		return nil
	}
	file, err := f.State.OpenFile(madeName, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// unmark removes that file once the state holds nothing else but the lock.
func (f *Folder) unmark() {
	left, err := fs.ReadDir(f.State.FS(), ".")
	needed := func(e fs.DirEntry) bool { return e.Name() != madeName && e.Name() != lockName }
	if err == nil && !slices.ContainsFunc(left, needed) {
		_ = f.State.Remove(madeName) // another run may have made it or none
	}
}

// acquire creates and locks the state folder.
func (f *Folder) acquire() error {
	if err := CheckOwner(f.Root); err != nil {
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

// checkState refuses a state with anything but folders and regular files with a single name,
// because writing to a link changes another file.
func (f *Folder) checkState() error {
	return fs.WalkDir(f.State.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // another run has just removed it
		case err != nil || info.IsDir():
			return err
		case !info.Mode().IsRegular() || Links(info) > 1:
			return &UnsafeError{filepath.Join(f.State.Name(), name),
				"is a link or not a regular file", ""}
		case name == lockName && info.Size() > 0:
			return &UnsafeError{filepath.Join(f.State.Name(), name), "is not our lock", ""}
		}
		return nil
	})
}

// UnsafeError says why it isn't safe to write to a folder. Chmod is the mode that makes it safe, as
// chmod takes it, or "" if none does.
type UnsafeError struct{ Path, Why, Chmod string }

func (e *UnsafeError) Error() string { return e.Path + " " + e.Why }

// CheckOwner refuses a folder that belongs to another user, that others may write to, or that they
// may rename, because they may write to a folder on the way to it. The error is an *UnsafeError.
func CheckOwner(root *os.Root) error {
	f := &Folder{Root: root}
	err := f.checkOwner(".")
	if above := sharedAbove(root.Name()); err == nil && above != "" {
		err = f.refuse(&UnsafeError{above,
			"may be written to by other users, who may rename what is in it", "+t"})
	}
	return err
}

// sharedAbove returns a folder on the way to another one in which other users may rename things; ""
// if there is none. A folder's owner isn't meant: you trust the owner of a folder if you put yours
// there. A pod's own volume has no other users.
func sharedAbove(dir string) string {
	for _, above := range Above(dir) {
		if info, err := os.Stat(above); err == nil && isShared(info) && !isPodVolume(above, mounts()) {
			return above
		}
	}
	return ""
}

// Above lists a path and the folders that it leads through, as written and as links lead. Nothing
// has to exist at the path.
func Above(path string) (list []string) {
	named, _ := filepath.Abs(path)
	for _, at := range above(named) {
		list = append(list, at)
		if real, err := filepath.EvalSymlinks(at); err == nil && real != at {
			list = append(list, above(real)...)
		}
	}
	return list
}

// IsWithin reports whether a path leads to a folder, or through it, or to the file that top is. It
// compares by identity: a folder can have many names, through case, mounts, and links. Nothing has
// to exist at the path.
func IsWithin(path, top string) (bool, error) {
	at, err := os.Stat(top)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(Above(path), func(above string) bool {
		there, err := os.Stat(above)
		return err == nil && os.SameFile(at, there)
	}), nil
}

// above lists a path and the folders that it lies in, as written.
func above(path string) (list []string) {
	for below := ""; path != below; path, below = filepath.Dir(path), path {
		list = append(list, path)
	}
	return list
}

// checkOwner refuses what isn't a folder, belongs to another user, or may be written to by others.
func (f *Folder) checkOwner(name string) error {
	info, err := f.lstatFolder(name)
	if err != nil || whose(info) == "" {
		return err
	}
	return f.refuse(&UnsafeError{f.path(name), whose(info), withoutOthers(info)})
}

// refuse returns the error about a folder, unless the file system keeps neither owners nor modes,
// as a new file shows. There, everyone with access to the disk could write to it.
func (f *Folder) refuse(unsafe *UnsafeError) error {
	file, err := CreateIn(f.Root, ".", ".", 0o600, 0)
	if err != nil {
		return err
	}
	defer file.Cleanup()
	mine, err := file.h.Stat()
	if err == nil && whose(mine) == "" {
		err = unsafe
	}
	return err
}

// Lstat describes a file. A path that leads out of the folder is an error. If a folder on the path
// is a link, even to another place in the folder, the error is an *UnsafeError.
func (f *Folder) Lstat(name string) (fs.FileInfo, error) {
	if dir := path.Dir(name); dir != "." && dir != name {
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

// lstatFolder describes a folder in this one. For anything else, the error is an *UnsafeError.
func (f *Folder) lstatFolder(name string) (fs.FileInfo, error) {
	info, err := f.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &UnsafeError{f.path(name), "is a link or not a folder", ""}
	}
	return info, err
}

// path returns the path of a file on this machine.
func (f *Folder) path(name string) string { return filepath.Join(f.Root.Name(), name) }

// Version identifies a state of a file: its size, mode, time, and the number that the system gives
// it. Another file, or the same one after a change, has another version.
func Version(info fs.FileInfo) string {
	return fmt.Sprint(info.Size(), info.Mode(), info.ModTime().UnixNano(), inode(info))
}

// Hash returns the hash of a regular file of this size, or "" if there is none.
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

// Read returns the content of a regular file of at most limit bytes, and nil for anything else.
func (f *Folder) Read(name string, limit int64) ([]byte, error) {
	if info, err := f.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	file, err := f.Root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadAll(file, limit)
}

// Open opens a file through the folder. If its version isn't the known one, Open returns InTheWay's
// error.
func (f *Folder) Open(name string) (*os.File, error) {
	file, err := f.Root.Open(name)
	if err != nil {
		return nil, wrap("open", f.path(name), err)
	}
	info, err := file.Stat()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.Versions[name] != Version(info) {
		err = f.InTheWay(name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Create starts a file of a known size and creates the folders above it. It replaces only known
// files.
func (f *Folder) Create(name string, size int64) (*File, error) {
	if f.readOnly != nil {
		return nil, f.readOnly
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

// Remove removes a file if it exists. It removes only known files.
func (f *Folder) Remove(name string) error {
	return f.replace(name, func() error {
		if err := f.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrap("unlink", f.path(name), err)
		}
		return nil
	})
}

// Rename gives a known file another name in the folder. It replaces only known files.
func (f *Folder) Rename(from, to string) error {
	return f.replace(to, func() error {
		info, err := f.Lstat(from)
		if err == nil && f.Versions[from] != Version(info) {
			return f.InTheWay(from)
		}
		if err == nil {
			err = f.Root.Rename(from, to)
		}
		if err != nil {
			return wrap("rename", f.path(from), err)
		}
		f.Versions[from] = ""
		return nil
	})
}

// replace runs do, which creates, renames, or removes name, and records the new version. If name
// exists and its version isn't the known one, replace returns InTheWay's error instead.
func (f *Folder) replace(name string, do func() error) error {
	if f.readOnly != nil {
		return f.readOnly
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := f.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && !strings.HasPrefix(name, names.StateDir+"/") &&
		f.Versions[name] != Version(info) {
		return f.InTheWay(name)
	}
	if err = do(); err != nil {
		return err
	}
	f.Versions[name] = ""
	if info, err = f.Lstat(name); err == nil {
		f.Versions[name] = Version(info)
	}
	return nil
}

// Release releases the lock and leaves the state for the next run.
func (f *Folder) Release() error {
	if f.readOnly != nil {
		return f.Close()
	}
	var err error
	if f.lock != nil {
		err = f.lock.Close()
	}
	return errors.Join(err, f.State.Close(), f.Root.Close())
}

// Close releases the lock, and removes the state folder if it's empty. Then it removes the
// folder if a run has made it and nothing is in it.
func (f *Folder) Close() (err error) {
	if f.readOnly != nil {
		if f.State != nil {
			err = errors.Join(f.State.Close(), os.RemoveAll(f.State.Name()))
		}
		return errors.Join(err, f.Root.Close())
	}
	if f.State != nil && f.made {
		f.unmark()
	}
	if f.lock != nil {
		err = f.removeLock()
	}
	if f.State != nil {
		err = errors.Join(err, f.State.Close())
		// this fails, on purpose, if an earlier run left something or another run has come
		_ = f.Root.Remove(names.StateDir)
	}
	err = errors.Join(err, f.Root.Close())
	at, missing := os.Lstat(f.Root.Name())
	if missing == nil && at.IsDir() && f.made {
		_ = os.Remove(f.Root.Name()) // which removes nothing that is in use
	}
	return err
}

// forFolders returns the mode of folders with these files: everyone who may read the files may list
// the folder, and only the user may change it.
func forFolders(files fs.FileMode) fs.FileMode { return 0o700 | files&0o044 | files>>2&0o011 }
