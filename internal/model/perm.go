package model

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// An access says who may read files, by the modes and groups of the files and of the folders above
// them. Other access lists don't count.
type access struct {
	files   map[right]bool
	folders map[string]right // by path, without links
}

// A right is a mode, as it is for the members of a group.
type right struct {
	mode  fs.FileMode
	group int
}

// bits returns the permission bits for a new file of a group that let no one else in. A folder lets
// those in who may search it. Members of the group may be others than those of the new file's.
func (r right) bits(group int) fs.FileMode {
	bits := r.mode.Perm() & 0o066
	if r.mode.IsDir() {
		bits = r.mode.Perm() & 0o011
		bits = bits<<2 | bits<<1
	}
	if r.group != group && bits&0o044 != 0o044 {
		return 0o600
	}
	return bits | 0o600
}

// Perm returns the permission bits of a result in a folder, which needn't exist yet: no one may read
// it who can't read all source files. Folders above both protect the result, too, and so don't count.
// A Hub's files leave all bits.
func (m *Model) Perm(target string) fs.FileMode { return m.access().within(target) }

func (m *Model) access() access {
	if m.readers != nil {
		return *m.readers
	}
	return accessTo(m.Folder, m.Listing.Files)
}

// Narrow takes the permissions of a local DF11 model into account, from which a result will be made.
func (m *Model) Narrow(d *DF11) {
	all := m.access()
	other := d.access()
	maps.Copy(all.files, other.files)
	maps.Copy(all.folders, other.folders)
	m.readers = &all
}

// Perm is [Model.Perm] for what is made of a DF11 model.
func (d *DF11) Perm(target string) fs.FileMode { return d.access().within(target) }

func (d *DF11) access() access { return accessTo(d.folder, d.list) }

// accessTo returns the access to files below dir. If dir is "", they aren't on this machine.
func accessTo(dir string, files []plan.File) access {
	a := access{map[right]bool{}, map[string]right{}}
	if dir == "" {
		return a
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		root = dir
	}
	a.addFolders(root)
	for _, file := range files {
		name := filepath.Join(root, filepath.FromSlash(file.Path))
		info, err := os.Lstat(name)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if name, err = filepath.EvalSymlinks(name); err == nil {
				info, err = os.Stat(name)
			}
		}
		if err == nil {
			a.files[right{info.Mode(), disk.Group(info)}] = true
			a.addFolders(filepath.Dir(name))
		}
	}
	return a
}

// addFolders adds a folder and those above it.
func (a access) addFolders(dir string) {
	for _, known := a.folders[dir]; !known; _, known = a.folders[dir] {
		if info, err := os.Stat(dir); err == nil {
			a.folders[dir] = right{info.Mode(), disk.Group(info)}
		} else {
			a.folders[dir] = right{fs.ModeDir | 0o700, 0}
		}
		dir = filepath.Dir(dir)
	}
}

// within returns the permission bits of new files in a folder, which needn't exist yet.
func (a access) within(target string) fs.FileMode {
	perm := fs.FileMode(0o666)
	at, group := existing(target)
	both := map[string]bool{} // folders above the files and the target
	for ; !both[at]; at = filepath.Dir(at) {
		both[at] = true
	}
	for r := range a.files {
		perm &= r.bits(group)
	}
	for dir, r := range a.folders {
		if !both[dir] {
			perm &= r.bits(group)
		}
	}
	return perm
}

// existing returns the first folder at or above a path that exists, without links, and the group
// that new files there get.
func existing(dir string) (found string, group int) {
	dir, err := filepath.Abs(dir)
	for err == nil {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			if info, err := os.Stat(real); err == nil {
				return real, disk.GroupIn(info)
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return "", -1
}
