package model

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
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
	"github.com/df11-convert/df11-convert/internal/python"
)

// CheckCopies refuses, before any work, files that must not be published: Git LFS pointers, whose
// real files weren't fetched, and links to files outside the folder, which aren't part of the
// model. It opens small files only.
func (m *Model) CheckCopies(p *plan.Plan) error {
	if !m.Local {
		return nil
	}
	root, err := filepath.EvalSymlinks(m.Folder)
	if err != nil {
		return err
	}
	for _, c := range published(p) {
		name := filepath.Join(m.Folder, filepath.FromSlash(c.Path))
		if err := checkLink(root, name, c.Path); err != nil {
			return err
		}
		if c.Size > maxPointer {
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

// published lists the files of a source that a result holds, config.json included.
func published(p *plan.Plan) []plan.File {
	list := p.AllCopied()
	if p.Config != "" {
		list = append(list, plan.File{Path: p.Config, Size: maxConfigBytes})
	}
	return list
}

// maxDisclosed is the size of the largest file in which Discloses looks: vocabularies are larger.
const maxDisclosed = 1 << 20

// onDisk matches absolute paths on somebody's disk, and those below a home.
var onDisk = regexp.MustCompile(`^(/[\w.-]+/|~/|[A-Za-z]:[/\\]\w|\\\\\w|file:/)[^\n]*$`)

// Discloses says what in a local source's small files may be no one else's business: access tokens,
// and in JSON files paths on a disk, such as the _name_or_path of a fine-tune. The result keeps the
// bytes of these files. It never returns a token itself.
func (m *Model) Discloses(p *plan.Plan) (found []string) {
	if !m.Local {
		return nil
	}
	for _, f := range published(p) {
		b, err := disk.Read(filepath.Join(m.Folder, filepath.FromSlash(f.Path)), maxDisclosed)
		if err != nil {
			continue // what needs the file says what is wrong with it
		}
		if issuer, at := names.AccessToken(string(b)); issuer != "" {
			found = append(found, human.Message("%s: line %d holds what looks like an access token of %s, which "+
				"the result keeps; remove it from the source before you publish", f.Path,
				1+bytes.Count(b[:at], []byte("\n")), issuer))
		}
		var value any
		if path.Ext(f.Path) != ".json" || python.Unmarshal(b, &value) != nil {
			continue
		}
		var walk func(key string, value any)
		walk = func(key string, value any) {
			switch v := value.(type) {
			case map[string]any:
				for _, k := range slices.Sorted(maps.Keys(v)) {
					walk(k, v[k])
				}
			case []any:
				for _, x := range v {
					walk(key, x)
				}
			case string:
				if onDisk.MatchString(v) {
					found = append(found, human.Message("%s: %s is %q, a path on a disk, which the result keeps; "+
						"remove it from the source if it's private", f.Path, key, v))
				}
			}
		}
		walk("", value)
	}
	return found
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
