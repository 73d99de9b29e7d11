package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/terminal"
)

// allCommands returns the program's commands, itself included.
func allCommands() []*cobra.Command {
	all := []*cobra.Command{rootCommand(newUI(os.Stdout, os.Stderr), nil)}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Commands()...)
	}
	return all
}

// TestHelp checks that help fits terminals down to 64 columns, and that its examples fit 80,
// because they are commands to copy. Flags take a folder, a file, or a repo; none takes a "string".
func TestHelp(t *testing.T) {
	commands := allCommands()
	if len(commands) < 12 {
		t.Errorf("%d commands", len(commands))
	}
	for _, c := range commands {
		for _, width := range []int{120, 80, 64} {
			var b strings.Builder
			writeHelp(&b, c, width)
			for line := range strings.Lines(b.String()) {
				if line = strings.TrimSuffix(line, "\n"); terminal.Columns(line) > width && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%s --help has %d columns for %d: %q", c.CommandPath(), terminal.Columns(line), width, line)
				}
			}
		}
		for line := range strings.Lines(c.Example) {
			if n := terminal.Columns(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: %d columns in %q", c.Name(), n, line)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); name == "string" {
				t.Errorf("%s --help: --%s takes a string", c.Name(), f.Name)
			}
		})
	}
}
