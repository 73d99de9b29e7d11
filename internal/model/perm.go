package model

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// Perm is what users may do with all files of a local source that a plan takes over, at most with
// what is made of them. The files of a Hub have no such rules.
func (m *Model) Perm(p *plan.Plan) fs.FileMode {
	names := []string{p.Config}
	for _, w := range m.Listing.Weights {
		names = append(names, w.Path)
	}
	for _, f := range slices.Concat(p.Copied, p.Components) {
		names = append(names, f.Path)
	}
	return permOf(m.Folder, names)
}

// Perm is what users may do with every file of a local DF11 model.
func (d *DF11) Perm() fs.FileMode {
	var names []string
	for _, file := range d.list {
		names = append(names, file.Path)
	}
	return permOf(d.folder, names)
}

// permOf is what users may do with all of the files of a folder, "" for none. The owner may always
// read and write.
func permOf(dir string, names []string) fs.FileMode {
	perm := fs.FileMode(0o666)
	for _, name := range names {
		if dir == "" || name == "" {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			perm &= info.Mode().Perm() | 0o600
		}
	}
	return perm
}
