package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestVerifyNeedsNoNameInASharedDirectory checks that verify works if its names in the directory
// for temporary files are taken. All users share that directory.
func TestVerifyNeedsNoNameInASharedDirectory(t *testing.T) {
	g := newForger(t)
	shared := t.TempDir()
	t.Setenv("TMPDIR", shared)
	t.Setenv("TMP", shared)
	world.Write(t, filepath.Join(shared, "df11-convert"), "somebody else's")
	g.AddRepo("anybody/m", g.models[llamaModel])
	ends(t, exitOK, "anybody/m equals", "verify", "anybody/m")
	if rest, err := os.ReadDir(shared); err != nil || len(rest) != 1 {
		t.Errorf("left behind: %v, %v", rest, err)
	}
}
