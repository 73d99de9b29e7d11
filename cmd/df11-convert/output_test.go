package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestLostResultIsAnError checks that every command ends with 1 and an error if its result can't be
// written, with and without --json, and that no hint proposes another disk.
func TestLostResultIsAnError(t *testing.T) {
	srv := hubtest.Start(t)
	srv.AddRepo("org/m", map[string][]byte{"pytorch_model.bin": {0}, "config.json": []byte("{}")})
	t.Setenv("HF_ENDPOINT", srv.URL)
	t.Setenv("HF_TOKEN", "hf_test")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	llama(t, at("m"), "BF16", 0, "")
	must(t, at("m"), "-o", at("out"))
	world.Write(t, at("list.yaml"), []byte("models: [{source: org/m, expect: not_convertible}]"))
	commands := map[string][]string{
		"df11-convert": {}, "convert": {at("m"), "-o", at("again")}, "plan": {at("m")}, "verify": {at("out"), "--against", at("m"), "--level", "structure"},
		"decode": {at("out"), "-o", at("back")}, "batch": {at("list.yaml")}, "status": {at("list.yaml")}, "inspect": {at("out")},
		"demo": {"-o", at("demo")}, "completion": {"bash"}, "help": {"verify"},
	}
	root := rootCommand(newUI(os.Stdout, os.Stderr), nil)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
		args, ok := commands[c.Name()]
		if !ok {
			t.Errorf("%s: no arguments to try it with", c.Name())
			continue
		}
		if c != root {
			args = append([]string{c.Name()}, args...)
		}
		loses(t, args...)
		if c != root && c.Name() != "help" && c.Name() != "completion" {
			loses(t, append(args, "--json")...)
		}
	}
	loses(t, "--help")
	loses(t, "--version")
}

// loses runs the program with a stdout that fails.
func loses(t *testing.T, args ...string) {
	t.Helper()
	dir := t.TempDir()
	world.Write(t, filepath.Join(dir, "closed"), nil)
	closed, err := os.Open(filepath.Join(dir, "closed"))
	world.Must(t, err)
	defer closed.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		full = closed // not on this system
	}
	defer full.Close()
	for _, stdout := range []*os.File{closed, full} {
		code, diag := printsTo(t, stdout, args...)
		if code != exitError || !strings.Contains(diag, "df11-convert: write to standard output: ") || strings.Contains(diag, "hint: free") {
			t.Errorf("%v > %s: exit %d, stderr:\n%s", args, stdout.Name(), code, diag)
		}
	}
}

// printsTo runs the program with another stdout.
func printsTo(t *testing.T, stdout *os.File, args ...string) (code int, stderr string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "stderr")
	f, err := os.Create(name)
	world.Must(t, err)
	defer f.Close()
	u := newUI(stdout, f)
	code = u.report(t.Context(), rootCommand(u, args).ExecuteContext(t.Context()))
	return code, string(world.Read(t, name))
}

// TestNoTextSaysOneFiles checks that formats of this package print numbers of things by count,
// which knows the singular.
func TestNoTextSaysOneFiles(t *testing.T) {
	files, err := filepath.Glob("*.go")
	world.Must(t, err)
	plural := regexp.MustCompile(`(of |/|line |holds )?%d [a-z]+s\b`)
	for _, name := range files {
		b, err := os.ReadFile(name)
		world.Must(t, err)
		for _, found := range plural.FindAllSubmatch(b, -1) {
			// "1 of 3 files", "1/3 files", and numbers that aren't counts or are never 1
			if !strings.HasSuffix(name, "_test.go") && len(found[1]) == 0 {
				t.Errorf("%s: %q is wrong for 1", name, found[0])
			}
		}
	}
}
