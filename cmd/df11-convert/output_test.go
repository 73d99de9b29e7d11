package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestLostResultIsAnError checks that a command ends with 1 and an error if its result can't be
// written, with and without --json, and that no hint proposes another disk.
func TestLostResultIsAnError(t *testing.T) {
	dir := t.TempDir()
	llama(t, filepath.Join(dir, "m"), "BF16", 0, "")
	world.Write(t, filepath.Join(dir, "closed"), "")
	closed, err := os.Open(filepath.Join(dir, "closed"))
	world.Must(t, err)
	defer closed.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		full = closed // not on this system
	}
	defer full.Close()
	diag, err := os.Create(filepath.Join(dir, "diag"))
	world.Must(t, err)
	defer diag.Close()
	plan := []string{"plan", filepath.Join(dir, "m")}
	for _, args := range [][]string{plan, append(plan, "--json"), {"--help"}, {"--version"}, {"completion", "bash"}} {
		for _, stdout := range []*os.File{closed, full} {
			world.Must(t, diag.Truncate(0))
			code := execute(t.Context(), newUI(stdout, diag), args)
			text := string(world.Read(t, diag.Name()))
			if code != exitError || !strings.Contains(text, "df11-convert: write to standard output: ") || strings.Contains(text, "hint: free") {
				t.Errorf("%v > %s: exit %d, stderr:\n%s", args, stdout.Name(), code, text)
			}
		}
	}
}
