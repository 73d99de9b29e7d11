//go:build unix

package model

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestPermCountsFolders checks that a result lets no one in whom a folder above its source keeps out,
// unless that folder is above the result, too; and that a link's target counts where it lies.
func TestPermCountsFolders(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	world.Must(t, err)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"shut/open/m", "open", "group/m", "entry/m"} {
		world.Must(t, os.MkdirAll(at(name), 0o755))
	}
	for name, mode := range map[string]fs.FileMode{"": 0o755, "shut": 0o700, "group": 0o750, "entry": 0o711} {
		world.Must(t, os.Chmod(at(name), mode))
	}
	for _, name := range []string{"shut/open/m/w", "open/w", "group/m/w", "entry/m/w"} {
		world.Must(t, os.WriteFile(at(name), nil, 0o600))
		world.Must(t, os.Chmod(at(name), 0o644))
	}
	world.Must(t, os.Symlink(at("shut/open/m/w"), at("open/link")))
	for _, c := range []struct {
		source, file, target string
		want                 fs.FileMode
	}{
		{"shut/open/m", "w", "out/new", 0o600},
		{"shut/open/m", "w", "shut/out", 0o644},
		{"shut/open/m", "w", "shut/open/m/out", 0o644},
		{"open", "w", "out", 0o644},
		{"open", "link", "out", 0o600},
		{"open", "link", "shut/out", 0o644},
		{"group/m", "w", "out", 0o640},
		{"group/m", "w", "group/out", 0o644},
		{"entry/m", "w", "out", 0o644},
		{"", "shut/open/m/w", "out", 0o600},
	} {
		m := &Model{Folder: at(c.source)}
		m.Listing.Files = []plan.File{{Path: c.file}}
		if got := m.Perm(at(c.target)); got != c.want {
			t.Errorf("%s of %q in %s: %o, want %o", c.file, c.source, c.target, got, c.want)
		}
	}
	if got := (&Model{}).Perm(at("out")); got != 0o666 {
		t.Errorf("of a Hub: %o", got)
	}
}

// TestPermCountsGroups checks that the members of another group aren't let in for those of the
// source's.
func TestPermCountsGroups(t *testing.T) {
	for _, c := range []struct {
		mode  fs.FileMode
		group int
		want  fs.FileMode
	}{
		{0o640, 7, 0o640}, {0o640, 8, 0o600}, {0o644, 8, 0o644}, {0o604, 8, 0o600}, {0o604, 7, 0o604}, {0o600, 8, 0o600},
		{fs.ModeDir | 0o750, 7, 0o660}, {fs.ModeDir | 0o750, 8, 0o600}, {fs.ModeDir | 0o755, 8, 0o666}, {fs.ModeDir | 0o744, 7, 0o600},
	} {
		if got := (right{c.mode, 7}).bits(c.group); got != c.want {
			t.Errorf("%v for group %d: %o, want %o", c.mode, c.group, got, c.want)
		}
	}
}
