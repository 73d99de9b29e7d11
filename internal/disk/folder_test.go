package disk_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// must ends the test if err isn't nil.
var must = world.Must

// content returns everything below a folder: names, modes, and what files and links hold.
func content(t *testing.T, dir string) (all string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		to, _ := os.Readlink(name)
		b, _ := os.ReadFile(name)
		all += fmt.Sprintln(name, info.Mode(), to, string(b))
		return err
	}))
	return all
}

// put writes a whole file into a folder.
func put(f *disk.Folder, name, text string) error {
	file, err := f.Create(name, int64(len(text)))
	if err != nil {
		return err
	}
	return file.WriteAll([]byte(text))
}

// A folder is refused if its state leads elsewhere or someone else may change it. It stays as it
// was, and so does everything its links lead to.
func TestUnsafeFolders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: links and modes of Windows")
	}
	link := func(to string) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			must(t, os.MkdirAll(filepath.Dir(name), 0o755))
			must(t, os.Symlink(to, name))
		}
	}
	mode := func(m fs.FileMode) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			must(t, os.MkdirAll(name, 0o755))
			must(t, os.Chmod(name, m))
		}
	}
	owner := func(uid, gid int, m fs.FileMode) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			mode(m)(t, name)
			if err := os.Chown(name, uid, gid); err != nil {
				t.Skip("NOT TESTED: only root gives folders away: ", err)
			}
		}
	}
	outside := t.TempDir()
	for what, c := range map[string]struct {
		name string // in the folder
		make func(t *testing.T, name string)
		safe bool
	}{
		"state is a link":            {".df11-convert", link(outside), false},
		"state is a link to nothing": {".df11-convert", link(filepath.Join(outside, "no")), false},
		"state is a link inside":     {".df11-convert", link("."), false},
		"state is a file":            {".df11-convert", func(t *testing.T, name string) { world.Write(t, name, "mine") }, false},
		"lock is a link":             {".df11-convert/lock", link(filepath.Join(outside, "lock")), false},
		"lock is a link to a file":   {".df11-convert/lock", link(filepath.Join(outside, "precious")), false},
		"lock is the user's":         {".df11-convert/lock", func(t *testing.T, name string) { world.Write(t, name, "mine") }, false},
		"journal is a link":          {".df11-convert/part-1-of-1.json", link(filepath.Join(outside, "precious")), false},
		"files is a link":            {".df11-convert/files", link(outside), false},
		"a file in files is a link":  {".df11-convert/files/config.json", link(filepath.Join(outside, "precious")), false},
		"spool has another name": {".df11-convert/spool-0123456789abcdef.data", func(t *testing.T, name string) {
			must(t, os.MkdirAll(filepath.Dir(name), 0o755))
			must(t, os.Link(filepath.Join(outside, "precious"), name))
		}, false},
		"everybody may write":              {".", mode(0o777), false},
		"everybody may write to state":     {".df11-convert", mode(0o777), false},
		"everybody may, but not to ours":   {".", mode(0o777 | fs.ModeSticky), true},
		"another user's":                   {".", owner(65534, 65534, 0o755), false},
		"another user's, sticky":           {".", owner(65534, 65534, 0o777|fs.ModeSticky), false},
		"another user's state":             {".df11-convert", owner(65534, 65534, 0o755), false},
		"a group of others may write":      {".", owner(os.Geteuid(), 65534, 0o775), false},
		"the user's own group may":         {".", owner(os.Geteuid(), os.Getegid(), 0o775), true},
		"an empty lock, as kills leave it": {".df11-convert/lock", func(t *testing.T, name string) { world.Write(t, name, "") }, true},
		"a file that a kill has left unfinished": {".df11-convert/.df11-UNFINISHEDUNFINISHEDUNFINI.tmp", func(t *testing.T, name string) {
			world.Write(t, name, "x")
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			world.Write(t, filepath.Join(outside, "precious"), "precious")
			dir := t.TempDir()
			must(t, os.Chmod(dir, 0o755))
			c.make(t, filepath.Join(dir, c.name))
			before, beside := content(t, dir), content(t, outside)
			f, err := disk.OpenFolder(disk.Output, dir, 0o666)
			if c.safe {
				must(t, err)
				must(t, f.Close())
				if _, err := os.Lstat(filepath.Join(dir, ".df11-convert")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the state is left: %v", err)
				}
				return
			}
			if unsafe := (*disk.UnsafeError)(nil); !errors.As(err, &unsafe) {
				t.Errorf("got %v", err)
			}
			if err == nil {
				must(t, f.Close())
			}
			if after := content(t, dir); after != before {
				t.Errorf("the folder was changed from\n%sto\n%s", before, after)
			}
			if after := content(t, outside); after != beside {
				t.Errorf("outside was changed from\n%sto\n%s", beside, after)
			}
		})
	}
}

// TestFoldersAbove checks that no folder on the way to ours may let others rename things, with or
// without links on the way.
func TestFoldersAbove(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: modes say nothing here")
	}
	type access struct {
		mode     fs.FileMode
		uid, gid int
	}
	me, own := os.Geteuid(), os.Getegid()
	for c, safe := range map[access]bool{
		{0o777, me, own}: false, {0o777 | fs.ModeSticky, me, own}: true, {0o755, me, own}: true, {0o775, me, own}: true,
		{0o775, me, 65534}: false, {0o775 | fs.ModeSetgid, 0, 65534}: false, {0o775 | fs.ModeSticky, me, 65534}: true,
		{0o755, 65534, 65534}: true, {0o775, 65534, 65534}: true, // the owner's private group
		{0o775, 65533, 65534}: false,
	} {
		base := t.TempDir()
		shared, apart := filepath.Join(base, "shared"), filepath.Join(base, "own")
		must(t, os.MkdirAll(filepath.Join(shared, "mine", "deep"), 0o700))
		must(t, os.Mkdir(apart, 0o700))
		if err := os.Chown(shared, c.uid, c.gid); err != nil {
			t.Log("NOT TESTED: only root gives folders away: ", err)
			continue
		}
		must(t, os.Chmod(shared, c.mode))
		must(t, os.Symlink(filepath.Join(shared, "mine"), filepath.Join(base, "into")))
		must(t, os.Symlink(apart, filepath.Join(shared, "out")))
		for _, dir := range []string{"shared/mine", "shared/mine/deep", "shared/mine/new", "into", "into/deep", "shared/out"} {
			f, err := disk.OpenFolder(disk.Work, filepath.Join(base, dir), 0o600)
			if unsafe := (*disk.UnsafeError)(nil); errors.As(err, &unsafe) == safe || safe && err != nil {
				t.Errorf("%s below %v: %v", dir, c, err)
			}
			if err == nil {
				must(t, f.Close())
			}
		}
	}
}

// No file is created, found, or removed through a folder that is a link, no matter when the link
// appears. If a file is a link, the link is replaced, and its target stays.
func TestNothingLeadsOut(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	world.Write(t, filepath.Join(outside, "precious"), "precious")
	sub := filepath.Join(dir, "sub")
	err := os.Symlink(outside, sub)
	// Wine creates no links, but reports success
	if info, gone := os.Lstat(sub); gone != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Skip("NOT TESTED: no symbolic links here: ", err)
	}
	f, err := disk.OpenFolder(disk.Output, dir, 0o666)
	must(t, err)
	file, err := f.Create("late/precious", 0)
	must(t, err)
	defer file.Cleanup()
	must(t, os.Remove(filepath.Join(dir, "late")))
	must(t, os.Symlink(outside, filepath.Join(dir, "late")))
	must(t, os.Symlink(filepath.Join(outside, "precious"), filepath.Join(dir, "file")))
	if file.Commit(0) == nil {
		t.Error("a file gets its name outside")
	}
	must(t, put(f, "real/deep/own", "own"))
	must(t, os.Symlink("real", filepath.Join(dir, "inside")))
	for _, name := range []string{"sub/precious", "inside/deep/own", "/file", "../file"} {
		_, found := f.Lstat(name)
		for what, err := range map[string]error{"written": put(f, name, "x"), "removed": f.Remove(name), "found": found} {
			if err == nil {
				t.Error(name, what)
			}
		}
	}
	if f.Hash(t.Context(), "sub/precious", 8, sha256.New()) != "" || f.Hash(t.Context(), "file", 8, sha256.New()) != "" {
		t.Error("hashed")
	}
	link, err := f.Lstat("file")
	must(t, err)
	f.Versions["file"] = disk.Version(link)
	must(t, put(f, "file", "ours"))
	if b, err := os.ReadFile(filepath.Join(outside, "precious")); string(b) != "precious" {
		t.Errorf("outside is %q, %v", b, err)
	}
	must(t, f.Close())
}

// TestCloseKeepsAFolderThatExisted checks that a folder which the user made stays, although it's empty
// in the end, and that one which a run has made goes, also if another run ends its work.
func TestCloseKeepsAFolderThatExisted(t *testing.T) {
	for i := range 8 {
		own, killed, kind := i&1 > 0, i&2 > 0, disk.Work
		if i&4 > 0 {
			kind = disk.Output
		}
		dir := filepath.Join(t.TempDir(), "work")
		if own {
			must(t, os.Mkdir(dir, 0o700))
		}
		f, err := disk.OpenFolder(kind, dir, 0o600)
		must(t, err)
		if killed {
			must(t, f.Release())
			f, err = disk.OpenFolder(kind, dir, 0o600)
			must(t, err)
		}
		must(t, f.Close())
		if _, err := os.Lstat(dir); (err == nil) != own {
			t.Errorf("%s, the user's: %v, killed before: %v; after the run: %v", kind, own, killed, err)
		}
	}
}
