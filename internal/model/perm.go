package model

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// Perm returns the permission bits that all source files in the plan share. Outputs get no more. A
// Hub's files have none, so they share all.
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

// Perm returns the permission bits that all files of a local DF11 model share.
func (d *DF11) Perm() fs.FileMode {
	var names []string
	for _, file := range d.list {
		names = append(names, file.Path)
	}
	return permOf(d.folder, names)
}

// permOf returns the permission bits that all names in dir share. "" stands for no file or folder.
// The owner may always read and write.
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
