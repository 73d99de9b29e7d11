package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestValuesAreCompleted checks that the shell offers the values of every flag that has a list of
// them, in every command that has the flag, and no names of files.
func TestValuesAreCompleted(t *testing.T) {
	root := rootCommand(newUI(os.Stdout, os.Stderr), nil)
	offered := map[string]bool{}
	for _, c := range append(root.Commands(), root) {
		for _, name := range append(slices.Collect(maps.Keys(completions)), slices.Collect(maps.Keys(choices))...) {
			if c.Flag(name) == nil && root.PersistentFlags().Lookup(name) == nil || slices.Contains([]string{"help", "completion"}, c.Name()) {
				continue
			}
			want := choices[name]
			if want == nil {
				want = completions[name]()
			}
			var words []string
			if c != root {
				words = []string{c.Name()}
			}
			lines := strings.Split(must(t, slices.Concat([]string{cobra.ShellCompRequestCmd}, words, []string{"--" + name, ""})...), "\n")
			if got := lines[:len(want)]; !slices.Equal(got, want) || lines[len(want)] != ":4" {
				t.Errorf("%s --%s: offers %q, want %q", c.Name(), name, lines, want)
			}
			offered[name] = true
		}
	}
	for name := range completions {
		if !offered[name] {
			t.Errorf("no command has --%s", name)
		}
	}
	for name := range choices {
		if completions[name] != nil || !offered[name] {
			t.Errorf("--%s is listed twice, or no command has it", name)
		}
	}
}

// TestShellsAreServed checks that each shell gets a script that asks the program for what to offer.
func TestShellsAreServed(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := must(t, "completion", shell); !strings.Contains(script, cobra.ShellCompRequestCmd) {
			t.Errorf("%s: no %s", shell, cobra.ShellCompRequestCmd)
		}
	}
}
