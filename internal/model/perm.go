package model

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// Perm returns the permission bits that all source files share. Outputs get no more. A Hub's files
// have none, so they share all.
func (m *Model) Perm() fs.FileMode { return permOf(m.Folder, m.Listing.Files) }

// Perm returns the permission bits that all files of a local DF11 model share.
func (d *DF11) Perm() fs.FileMode { return permOf(d.folder, d.list) }

// permOf returns the permission bits that all files in dir share, or all if dir is "". The owner may
// always read and write.
func permOf(dir string, files []plan.File) fs.FileMode {
	perm := fs.FileMode(0o666)
	if dir == "" {
		return perm
	}
	for _, file := range files {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(file.Path)))
		if err == nil {
			perm &= info.Mode().Perm() | 0o600
		}
	}
	return perm
}
