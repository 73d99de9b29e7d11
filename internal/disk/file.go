// Package disk handles the program's folders and files on this machine. It locks a folder and
// writes in it alone, writes files that appear whole or not at all, gathers small writes, and reads
// small files within a limit. It knows nothing about models.
//
// It's the only package that may read whole files. The linter refuses that anywhere else.
package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/df11-convert/df11-convert/internal/names"
)

// Temporary names begin and end like this. No other file has such a name, so a run can delete what
// a killed run left.
const (
	tempPrefix = names.Ours + "-"
	tempSuffix = ".tmp"
)

// handle is the part of [os.File] that File needs. Tests replace it with a failing handle.
type handle interface {
	io.ReaderAt
	io.WriterAt
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// File is a file being written under a temporary name. ReadAt and WriteAt may be called
// concurrently; the other methods may not.
type File struct {
	h    handle
	root *os.Root // has both names
	name string   // the target, in root
	temp string   // in root; "" once there is nothing to clean up

	// naming renames the file by calling rename, or returns an error.
	naming func(rename func() error) error
}

// CreateIn creates a file that will appear as name in root; links can't lead out of root. Until
// then the file is in the folder temp of root, on the same file system. If size > 0 and the system
// supports it, CreateIn allocates the space now, so that a full disk shows at once. Defer Cleanup,
// and keep root open until then. Errors of the file are an [fs.PathError] with its final name.
func CreateIn(root *os.Root, name, temp string, perm fs.FileMode, size int64) (*File, error) {
	f := &File{root: root, name: name, temp: filepath.Join(temp, TempName()),
		naming: func(rename func() error) error { return rename() }}
	h, err := root.OpenFile(f.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, f.wrap("create", err)
	}
	f.h = h
	if size > 0 {
		if err := allocate(h, size); err != nil {
			f.Cleanup()
			return nil, f.wrap("allocate", err)
		}
	}
	return f, nil
}

// WriteFile writes data to path, atomically and durably, with these permission bits except those that
// umask takes. Until it's complete, the file is in path's folder under another name. WriteFile also
// removes what killed runs have left there so.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return wrap("create", path, err)
	}
	defer root.Close()
	removeTemporary(root, staleAge)
	f, err := CreateIn(root, filepath.Base(path), ".", perm, 0)
	if err != nil {
		return err
	}
	return f.WriteAll(data)
}

// TempName returns a new name for an unfinished file.
func TempName() string { return tempPrefix + rand.Text() + tempSuffix }

// staleAge is how long a temporary file hasn't changed once its writer must be gone.
const staleAge = time.Hour

// removeTemporary deletes the temporary files of some age that killed runs left in a folder. With no
// age, lock the folder first, so that no other process is writing there.
func removeTemporary(dir *os.Root, age time.Duration) {
	left, _ := fs.Glob(dir.FS(), tempPrefix+"*"+tempSuffix)
	for _, name := range left {
		if st, err := dir.Lstat(name); age == 0 || err == nil && time.Since(st.ModTime()) >= age {
			_ = dir.Remove(name) // which costs space if it stays
		}
	}
}

// writebackFrom is the smallest write to send to disk at once. Smaller ones may share their pages
// with later writes.
const writebackFrom = 256 << 10

// WriteAt writes all of p at off, or fails. A large write starts on its way to the disk at once, so
// that the disk isn't idle until Commit.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.h.WriteAt(p, off)
	if err != nil {
		return n, f.wrap("write", err)
	}
	if h, ok := f.h.(*os.File); ok && n >= writebackFrom {
		beginWriteback(h, off, int64(n))
	}
	return n, nil
}

// WriteAll writes and commits all of an empty file. After an error it cleans up.
func (f *File) WriteAll(data []byte) error {
	defer f.Cleanup()
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return f.Commit(int64(len(data)))
}

// ReadAt reads what was written. At the end of the file, the error is [io.EOF] itself.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.h.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = f.wrap("read", err)
	}
	return n, err
}

// Commit checks that the file holds wantSize bytes, syncs and closes it, and renames it.
// After an error, no file has appeared, unless only the last step failed: syncing the directory (Op
// "sync directory of").
func (f *File) Commit(wantSize int64) error {
	if err := f.checkSize(wantSize); err != nil {
		return err
	}
	if err := f.h.Sync(); err != nil {
		return f.wrap("sync", err)
	}
	if err := f.h.Close(); err != nil {
		return f.wrap("close", err)
	}
	if err := f.naming(f.rename); err != nil {
		return err
	}
	if err := syncDir(f.root, filepath.Dir(f.name)); err != nil {
		return f.wrap("sync directory of", err)
	}
	return nil
}

func (f *File) rename() error {
	if err := f.root.Rename(f.temp, f.name); err != nil {
		return f.wrap("rename", err)
	}
	f.temp = ""
	return nil
}

// checkSize compares the size, and frees space that was allocated beyond it.
func (f *File) checkSize(want int64) error {
	info, err := f.h.Stat()
	if err != nil {
		return f.wrap("stat", err)
	}
	if info.Size() != want {
		return f.wrap("write", fmt.Errorf("file has %d bytes, want %d", info.Size(), want))
	}
	if err := f.h.Truncate(want); err != nil {
		return f.wrap("truncate", err)
	}
	return nil
}

// Cleanup removes the file unless Commit has given it its name. You may defer it right after
// CreateIn, and call it more than once.
func (f *File) Cleanup() {
	if f.temp == "" {
		return
	}
	_ = f.h.Close() // the file is discarded
	_ = f.root.Remove(f.temp)
	f.temp = ""
}

func (f *File) wrap(op string, err error) *fs.PathError {
	return wrap(op, filepath.Join(f.root.Name(), f.name), err)
}

// wrap returns err with the final name, because the system's own error names only the temporary
// file.
func wrap(op, path string, err error) *fs.PathError {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	} else if le, ok := errors.AsType[*os.LinkError](err); ok {
		err = le.Err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
