package model

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// CheckCopies refuses, before any work, files of which a result must take nothing: Git LFS
// pointers, whose real files weren't fetched, and links to files outside the folder, which aren't
// part of the model. It binds the others to what they are now, because they're copied at the end: a
// small file to its hash, and of a large one, which stays open, a link put in its place isn't
// followed.
func (m *Model) CheckCopies(p *plan.Plan) error {
	if !m.Local {
		return nil
	}
	real, err := filepath.EvalSymlinks(m.Folder)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return err
	}
	defer root.Close()
	linked := map[string]string{}
	for _, c := range p.Takes() {
		name := filepath.Join(m.Folder, filepath.FromSlash(c.Path))
		if c.Path == names.Card && (m.cardKept != "" || !Exists(name)) {
			continue // it's kept back, or a source that is made of files has one of its own
		}
		st, err := m.checkCopy(root, name, c.Path)
		if err != nil {
			return err
		}
		if disk.Links(st) > 1 {
			linked[disk.Version(st)] = c.Path
		}
	}
	return m.checkHardLinks(real, linked)
}

// checkHardLinks refuses a file to publish that has another name below root which the folder keeps
// back: its content is private, as that of such a link is. It searches hidden folders, too. linked
// has the names of the files to publish that have several ones, by their versions.
func (m *Model) checkHardLinks(root string, linked map[string]string) error {
	folder, searched := m.Original().Listing.Folder, 0
	maps.DeleteFunc(linked, func(_, name string) bool { return folder.Includes(name) })
	if len(linked) == 0 {
		return nil
	}
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what can't be read hasn't been listed either
		}
		st, err := d.Info()
		rel, ok := isWithin(root, p)
		if err != nil || !ok {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		searched++
		name, isTaken := linked[disk.Version(st)]
		switch {
		case searched > plan.MaxFiles:
			for _, name := range linked {
				return refuseHardLink(name, "a hard link, and the folder has too many files to find its other names")
			}
		case isTaken && folder.KeepsBack(filepath.ToSlash(rel)) != "":
			return refuseHardLink(name, "a hard link to a file that is hidden or named by a .gitignore")
		}
		return nil
	})
}

func refuseHardLink(file, what string) error {
	return &plan.RefusedError{
		Detail: fmt.Sprintf("%q is %s", file, what),
		Hint:   hint.HardLink.With("file", reader.Quote(file)),
	}
}

// checkCopy is CheckCopies for one file below a root, which it describes.
func (m *Model) checkCopy(root *os.Root, name, path string) (st fs.FileInfo, err error) {
	target, err := checkLink(root.Name(), name, path)
	if err != nil {
		if f := m.Listing.Folder; f != nil && f.Includes(path) {
			err = hint.On(err, hint.LinkIncluded.With("not", "!/"+reader.Quote(path)))
		}
		return nil, err
	}
	file, err := disk.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if file != nil {
			file.Close()
		}
	}()
	st, err = file.Stat() // of a source that is made of files, it may have another size
	if err != nil {
		return nil, err
	}
	if !m.isTarget(root, path, target, st) {
		return nil, &ChangedError{File: path}
	}
	made, isMade := m.made[path]
	switch {
	case path == names.Card: // it has been read
		return st, nil
	case st.Size() > MaxDisclosed && !isMade:
		err, file = m.disk.pin(path, file, st), nil
		return st, err
	}
	b, err := disk.ReadAll(file, maxConfigBytes)
	if err != nil {
		return nil, err
	}
	if len(b) <= maxPointer && strings.HasPrefix(string(b), lfsPointer) {
		return nil, refusePointer(fmt.Sprintf("%q", path), "a file that was")
	}
	if !isMade {
		return st, m.bind(path, b)
	}
	if m.From != nil && !bytes.Equal(made, b) { // it was read before its link was checked
		return nil, &ChangedError{File: path}
	}
	return st, nil
}

// isTarget reports whether an open file is the one that target names, and whether target is where
// the source's list of files says that the path leads. Someone may have put another file or link
// there meanwhile, for any folder on the way, too.
func (m *Model) isTarget(root *os.Root, path, target string, open fs.FileInfo) bool {
	below, isBelow := isWithin(root.Name(), target)
	if !isBelow { // in a download cache
		there, err := os.Stat(target)
		return err == nil && os.SameFile(there, open)
	}
	there, err := root.Stat(below) // which no link leads out of the root
	return err == nil && os.SameFile(there, open) &&
		filepath.ToSlash(below) == m.Original().Listing.Folder.Target(path)
}

// published lists the files of a source whose bytes a result holds.
func published(p *plan.Plan) []plan.File {
	return slices.DeleteFunc(p.Takes(), func(f plan.File) bool { return f.Path == names.Card })
}

// inCache reports whether target is a file of a download cache, where the links of a snapshot lead:
// in a blobs folder, and named by its hash.
func inCache(target string) bool {
	dir, name := path.Split(filepath.ToSlash(target))
	return names.IsCommit(name) && blobs.MatchString(dir)
}

// blobs matches a blobs folder, or one below it for a hash's first digits. Programs for containers
// keep images of others in blobs/sha256.
var blobs = regexp.MustCompile(`/blobs/([0-9a-f]{2}/)*$`)

// noteLink adds a link, whose path from root is rel, to those that lead to a file below root in the
// end.
func noteLink(links map[string]string, root, link, rel string) {
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		return // what needs the file says what is wrong with it
	}
	if below, ok := isWithin(root, target); ok {
		links[rel] = filepath.ToSlash(below)
	}
}

// isWithin reports whether a path without links is below root, and returns the path from there.
func isWithin(root, target string) (below string, ok bool) {
	below, err := filepath.Rel(root, target)
	return below, err == nil && filepath.IsLocal(below)
}

// checkLink returns where a path leads in the end. It refuses a link that leads neither below root
// nor into a download cache.
func checkLink(root, name, file string) (target string, err error) {
	target, err = filepath.EvalSymlinks(name)
	if err != nil {
		return "", cmp.Or(brokenLink(name, file), err)
	}
	if _, ok := isWithin(root, target); ok || inCache(target) {
		return target, nil
	}
	return "", &plan.RefusedError{
		Detail: fmt.Sprintf("%q is a link to a file outside the source, %q", file, target),
		Hint:   hint.LinkOutside,
	}
}

// lfsPointer begins the small text that Git stores instead of a large file. Read as a header
// length, it's out of range.
const lfsPointer = "version https://git-lfs.github.com/spec/"

// maxPointer is the size below which Git LFS looks for pointers.
const maxPointer = 1024

func refusePointer(file, what string) error {
	return &plan.RefusedError{
		Detail: file + " is a Git LFS pointer to " + what + " not fetched",
		Hint:   hint.Pointer,
	}
}
