package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// local is a store of files below a folder. Their bytes aren't checked.
type local struct {
	dir    string
	opened map[string]openFile // weight files, by path
	// large files that are copied as they were when they were checked, by path; the File is nil if
	// they're too many to stay open
	pinned map[string]openFile
}

// An openFile is an open file with its size and time at that moment.
type openFile struct {
	*os.File
	then fs.FileInfo
}

func newLocal(dir string) *local { return &local{dir, map[string]openFile{}, map[string]openFile{}} }

// Exists reports whether a path is a local file or folder.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// A LinkError says that a file that the model needs is a link to something that isn't there.
type LinkError struct{ File, Target string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("%q is a link to %q, which isn't there", e.File, e.Target)
}

// Hint says what to do about it.
func (e *LinkError) Hint() hint.Hint { return hint.Link }

// Unwrap makes it a file that doesn't exist.
func (e *LinkError) Unwrap() error {
	return &fs.PathError{Op: "open", Path: e.File, Err: fs.ErrNotExist}
}

// brokenLink returns the LinkError of a file, or nil if it's no link to something that isn't there.
func brokenLink(file, rel string) error {
	target, notLink := os.Readlink(file)
	if _, err := os.Stat(file); notLink == nil && errors.Is(err, fs.ErrNotExist) {
		return &LinkError{rel, target}
	}
	return nil
}

// listFolder returns the files below dir, with forward slashes. Links to files count as those
// files, and it notes which of these are below dir, too. It skips folders for which enter returns
// false, given the path from dir. For a link to a folder it calls linked, and doesn't follow it.
// For a file that can't be one of a model, such as a broken link or a pipe, it calls odd, which
// says whether to list it, as an empty file.
func listFolder(dir string, enter func(rel string) bool, linked func(rel string) error,
	odd func(rel string, err error) (bool, error)) (*files, error) {
	root, err := filepath.EvalSymlinks(dir) // WalkDir doesn't follow a link to a folder
	if err != nil {
		return nil, err
	}
	var list []plan.File
	links := map[string]string{}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil && p != root && errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed meanwhile
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if p != root && !enter(rel) {
				return fs.SkipDir
			}
			return nil
		}
		st, err := os.Stat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist) && d.Type()&fs.ModeSymlink == 0:
			return nil // it was removed meanwhile
		case err != nil && d.Type()&fs.ModeSymlink == 0:
			return err
		case err == nil && st.IsDir():
			return linked(rel)
		case err == nil:
			err = disk.Regular(p, st.Mode())
		}
		file := plan.File{Path: rel}
		if err == nil {
			file.Size = st.Size()
			if d.Type()&fs.ModeSymlink != 0 {
				noteLink(links, root, p, rel)
			}
		} else if listed, err := odd(rel, cmp.Or(brokenLink(p, rel), err)); err != nil || !listed {
			return err
		}
		list = append(list, file)
		if len(list) > plan.MaxFiles {
			return fs.SkipAll // newFiles refuses them
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f, err := newFiles(newLocal(dir), list)
	if err == nil {
		f.links = links
	}
	return f, err
}

// isResult reports whether a folder holds a conversion, finished or not. Inside a source, such a
// folder isn't part of it: otherwise a conversion would change its own source.
func isResult(dir string) bool {
	return Exists(filepath.Join(dir, names.Manifest)) ||
		Exists(filepath.Join(dir, names.StateDir))
}

// diskPath returns where a file is on this machine.
func (l *local) diskPath(path string) string {
	return filepath.Join(l.dir, filepath.FromSlash(path))
}

// open opens a file by its name, or returns the pinned file of that name, which stays open. If
// another one has the name of a pinned file, the error is a ChangedError.
func (l *local) open(path string) (f openFile, stays bool, err error) {
	f, isPinned := l.pinned[path]
	if f.File != nil {
		return f, true, nil
	}
	if f.File, err = disk.Open(l.diskPath(path)); err != nil {
		return f, false, err
	}
	now, err := f.Stat()
	if !isPinned {
		f.then = now
	}
	if err == nil && !os.SameFile(now, f.then) {
		err = &ChangedError{File: path}
	}
	if err != nil {
		return f, false, errors.Join(err, f.Close())
	}
	return f, false, nil
}

func (l *local) OpenFile(_ context.Context, path string) (io.ReadCloser, error) {
	f, stays, err := l.open(path)
	if err != nil {
		return nil, err
	}
	var r io.ReadCloser = f.File
	if stays {
		r = io.NopCloser(io.NewSectionReader(f, 0, f.then.Size()))
	}
	return &steadyReader{r, func() error { return f.unchanged(path) }}, nil
}

// maxOpen is how many pinned files stay open. Some systems let a process open a thousand.
const maxOpen = 256

// pin binds a path to a file, as it was when then was read. It takes the file over. Files that stay
// open don't need the number that the system gives them, which some file systems change.
func (l *local) pin(path string, file *os.File, then fs.FileInfo) error {
	old, isPinned := l.pinned[path]
	switch {
	case isPinned:
		err := file.Close()
		if !os.SameFile(old.then, then) {
			err = &ChangedError{File: path}
		}
		return err
	case len(l.pinned) < maxOpen:
		l.pinned[path] = openFile{file, then}
		return nil
	}
	l.pinned[path] = openFile{nil, then}
	return file.Close()
}

// A steadyReader reads a file. It returns io.EOF only if check finds that the file hasn't changed.
type steadyReader struct {
	io.ReadCloser
	check func() error
}

func (s *steadyReader) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		if changed := s.check(); changed != nil {
			err = changed
		}
	}
	return n, err
}

func (l *local) read(_ context.Context, path string, limit int64) ([]byte, error) {
	b, err := disk.Read(l.diskPath(path), limit)
	if err != nil {
		err = cmp.Or(brokenLink(l.diskPath(path), path), err)
	}
	return b, err
}

func (l *local) hold(paths []string) error {
	for _, path := range paths {
		file, err := disk.Open(l.diskPath(path))
		if err == nil {
			err = l.keep(path, file)
		}
		if err != nil {
			return cmp.Or(brokenLink(l.diskPath(path), path), err)
		}
	}
	return nil
}

// keep makes an open file the one for a path.
func (l *local) keep(path string, file *os.File) error {
	then, err := file.Stat()
	l.opened[path] = openFile{file, then}
	return err
}

func (l *local) stream(_ context.Context, path string, off, end int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(l.held(path), off, end-off)), nil
}

func (l *local) weights(path string) io.ReaderAt { return l.held(path) }

func (l *local) sparse(_ context.Context, path string) io.ReaderAt { return l.held(path) }

func (l *local) held(path string) io.ReaderAt {
	if f, ok := l.opened[path]; ok {
		return f
	}
	return nil
}

func (l *local) lacks(string) bool { return false }

func (l *local) unchanged(path string) error { return l.opened[path].unchanged(path) }

// unchanged checks the open file, because another file may have taken its name.
func (f openFile) unchanged(path string) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if now.Size() != f.then.Size() || !now.ModTime().Equal(f.then.ModTime()) {
		return &ChangedError{File: path}
	}
	return nil
}

func (l *local) Recheck(context.Context, string) bool { return false }

func (l *local) main(context.Context, int64) (plan.Source, error) {
	return plan.Source{}, errors.ErrUnsupported
}

func (l *local) FreeBuffers() {}

func (l *local) Remote() bool { return false }

func (l *local) Close() error {
	var errs []error
	for _, file := range l.opened {
		errs = append(errs, file.Close())
	}
	for _, file := range l.pinned {
		if file.File != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}
