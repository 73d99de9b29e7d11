package main

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestVerifyNeedsNoNameInASharedDirectory checks that verify works if its names in the directory
// for temporary files are taken. All users share that directory.
func TestVerifyNeedsNoNameInASharedDirectory(t *testing.T) {
	g := newForger(t)
	shared := t.TempDir()
	t.Setenv("TMPDIR", shared)
	t.Setenv("TMP", shared)
	world.Write(t, filepath.Join(shared, "df11-convert"), []byte("somebody else's"))
	g.AddRepo("anybody/m", g.models[llamaModel])
	ends(t, exitOK, "anybody/m equals", "verify", "anybody/m")
	if rest, err := os.ReadDir(shared); err != nil || len(rest) != 1 {
		t.Errorf("left behind: %v, %v", rest, err)
	}
}

// TestNothingOfOursLiesInASharedDirectory checks that without HOME, the program still looks for
// token, cache, and kept work in the user's own home.
func TestNothingOfOursLiesInASharedDirectory(t *testing.T) {
	me, err := user.Current()
	if err != nil || me.HomeDir == "" {
		t.Skip("the system knows no home of this user")
	}
	for _, name := range []string{"HOME", "USERPROFILE", "home", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, "")
	}
	if home := homeDir(); home != me.HomeDir {
		t.Errorf("home is %s, not %s", home, me.HomeDir)
	}
	if dir := jobDir(convert.Options{}, strings.Repeat("0", 64)); !strings.HasPrefix(dir, me.HomeDir) {
		t.Errorf("work lies in %s", dir)
	}
}
