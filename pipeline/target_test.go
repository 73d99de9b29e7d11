package pipeline

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// TestFoldersAmongOtherThings checks that a result doesn't land among other files in the current
// folder, unless an earlier run has begun there, or it holds only what a clone of a new repo holds.
func TestFoldersAmongOtherThings(t *testing.T) {
	for what, tt := range map[string]struct {
		files   []string
		folder  string // "" for the current one
		refused bool
	}{
		"nothing":           {},
		"someone's notes":   {files: []string{"notes.txt"}, refused: true},
		"a new repo":        {files: []string{".git/config", "README.md", "LICENSE.txt", ".gitattributes"}},
		"a result":          {files: []string{"notes.txt", "df11-manifest.json"}},
		"a begun result":    {files: []string{"notes.txt", ".df11-convert/lock"}},
		"a folder of files": {files: []string{"models/notes.txt"}, refused: true},
		"another folder":    {files: []string{"models/notes.txt"}, folder: "models"},
		"a new folder":      {files: []string{"notes.txt"}, folder: "new"},
	} {
		dir := t.TempDir()
		t.Chdir(dir)
		for _, name := range tt.files {
			world.Write(t, filepath.Join(dir, filepath.FromSlash(name)), "x")
		}
		err := checkFolder(filepath.Join(dir, tt.folder), "m")
		if usage.Is(err) != tt.refused || !tt.refused && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestWorkFolders checks that each job has a work folder of its own, always the same one: parts,
// targets, and plans don't share any.
func TestWorkFolders(t *testing.T) {
	one, two := strings.Repeat("1", 64), strings.Repeat("2", 64)
	in := func(o Options, repo, digest string) string {
		o.WorkDir, o.SharedWorkDir = "work", true
		return o.workDir(repo, digest)
	}
	names := map[string]bool{}
	for _, name := range []string{
		in(Options{}, "", one), in(Options{}, "", two), in(Options{}, "me/m", one), in(Options{}, "me/n", one),
		in(Options{Part: 1, Parts: 2}, "me/m", one), in(Options{Part: 2, Parts: 2}, "me/m", one), in(Options{Part: 1, Parts: 3}, "me/m", one),
	} {
		if names[name] || filepath.Dir(name) != "work" {
			t.Errorf("%s: among %q", name, slices.Sorted(maps.Keys(names)))
		}
		names[name] = true
	}
	if again := in(Options{}, "me/m", one); !names[again] {
		t.Errorf("the same job gets %s", again)
	}
	if own := (&Options{WorkDir: "mine"}).workDir("me/m", one); own != "mine" {
		t.Errorf("a folder of the caller's is %s", own)
	}
}

// TestOtherWorkIsNamed checks which work folders a run names: those that other plans left for its
// target, and neither its own, nor those of its parts, nor those of other targets.
func TestOtherWorkIsNamed(t *testing.T) {
	const mine, other = "1111111111111111", "2222222222222222"
	in := t.TempDir()
	for _, name := range []string{"me--m-DF11-" + mine, "me--m-DF11-" + mine + "-part-1-of-2", "me--m-DF11-" + other, "me--m-DF11-" + other + "-part-1-of-2",
		"me--n-DF11-" + other, other, "notes"} {
		world.Write(t, filepath.Join(in, name, "data"), "12345")
	}
	world.Write(t, filepath.Join(in, "me--m-DF11-3333333333333333"), "a file")
	said := func(o Options, own string) (lines []string) {
		s := &session{Means: Means{Notice: func(line string) { lines = append(lines, line) }}}
		s.sayOtherWork(&o, filepath.Join(in, own))
		return lines
	}
	shared := Options{WorkDir: in, SharedWorkDir: true}
	got := said(shared, "me--m-DF11-"+mine)
	if len(got) != 1 || !strings.Contains(got[0], "for me/m-DF11,") || !strings.Contains(got[0], "left 10 B in "+in+": me--m-DF11-"+other+", me--m-DF11-"+other+"-part-1-of-2;") {
		t.Errorf("%q", got)
	}
	for what, lines := range map[string][]string{
		"of another target":          said(shared, "me--x-DF11-"+mine),
		"the caller's own folder":    said(Options{WorkDir: in}, "me--m-DF11-"+mine),
		"a name that isn't a job's":  said(shared, "notes"),
		"the job of a folder, alone": said(shared, mine),
	} {
		if len(lines) > 0 {
			t.Errorf("%s: %q", what, lines)
		}
	}
	if _, err := os.Stat(filepath.Join(in, "me--m-DF11-"+other, "data")); err != nil {
		t.Error(err)
	}
}
