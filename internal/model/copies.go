package model

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// CheckCopies refuses, before any work, files of which a result must take nothing: Git LFS
// pointers, whose real files weren't fetched, and links to files outside the folder, which aren't
// part of the model. It opens small files only.
func (m *Model) CheckCopies(p *plan.Plan) error {
	if !m.Local {
		return nil
	}
	root, err := filepath.EvalSymlinks(m.Folder)
	if err != nil {
		return err
	}
	for _, c := range p.Takes() {
		name := filepath.Join(m.Folder, filepath.FromSlash(c.Path))
		if c.Path == names.Card && (m.cardKept != "" || !Exists(name)) {
			continue // it's kept back, or a source that is made of files has one of its own
		}
		if err := checkLink(root, name, c.Path); err != nil {
			if f := m.Listing.Folder; f != nil && f.Includes(c.Path) {
				err = hint.On(err, hint.LinkIncluded.With("not", human.ShellWord("!/"+reader.Quote(c.Path))))
			}
			return err
		}
		st, err := os.Stat(name) // of a source that is made of files, it may have another size
		if err != nil {
			return err
		}
		if st.Size() > maxPointer || c.Path == names.Card {
			continue
		}
		b, err := disk.Read(name, maxPointer)
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(b), lfsPointer) {
			return refusePointer(fmt.Sprintf("%q", c.Path), "a file that was")
		}
	}
	return nil
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
	if below, err := filepath.Rel(root, target); err == nil && filepath.IsLocal(below) {
		links[rel] = filepath.ToSlash(below)
	}
}

// checkLink refuses a link that leads neither below root nor into a download cache.
func checkLink(root, name, file string) error {
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return cmp.Or(brokenLink(name, file), err)
	}
	below, err := filepath.Rel(root, target)
	if err == nil && filepath.IsLocal(below) || inCache(target) {
		return nil
	}
	return &plan.RefusedError{
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
