//go:build !js

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/verify/kernel"
)

// TestKernelLosesNoFile runs --install and --uninstall in all short orders, with files of yours in
// between. Neither may lose a file of yours, and --uninstall puts back what was there.
func TestKernelLosesNoFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, kernelFile)
	kept := name + officialKernel
	yours := map[string]string{
		"1": ".visible .entry decode(1", "2": ".visible .entry decode(2", "other": "notes",
	}
	steps := []string{"install", "uninstall", "1 to name", "2 to name", "other to kept", "1 to kept"}
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(b)
	}
	refused := 0
	for n := range len(steps) * len(steps) * len(steps) {
		order := []string{steps[n%6], steps[n/6%6], steps[n/36], "install", "uninstall"}
		for _, file := range []string{name, kept} {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		for i, step := range order {
			before := []string{read(name), read(kept)}
			if what, where, ok := strings.Cut(step, " to "); ok {
				world.Must(t, os.WriteFile(map[string]string{"name": name, "kept": kept}[where], []byte(yours[what]), 0o600))
				continue
			}
			code, _, stderr := program(t, "kernel", "--"+step, name)
			after := []string{read(name), read(kept)}
			for _, content := range before {
				if content != "" && content != kernel.PTX() && content != after[0] && content != after[1] {
					t.Fatalf("%q at %d: lost %q", order, i, content)
				}
			}
			switch {
			case code != exitOK && (before[0] != after[0] || before[1] != after[1]):
				t.Fatalf("%q at %d: changed %q to %q, and failed: %s", order, i, before, after, stderr)
			case code != exitOK && strings.Contains(stderr, "is there already"):
				refused++
			case code == exitOK && step == "install" && (after[0] != kernel.PTX() || after[1] != before[0]),
				code == exitOK && step == "uninstall" && (after[0] != before[1] || after[1] != ""):
				t.Fatalf("%q at %d: %q to %q", order, i, before, after)
			}
		}
	}
	if refused == 0 {
		t.Error("no file of yours was in the way")
	}
}
