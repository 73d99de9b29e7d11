package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/terminal"
)

// allCommands are the program and the commands below it.
func allCommands() []*cobra.Command {
	all := []*cobra.Command{rootCommand(newUI(os.Stdout, os.Stderr), nil)}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Commands()...)
	}
	return all
}

// TestHelp: no line of any command's help is wider than a terminal, down to 64 columns; examples,
// which are commands to copy, fit 80 as they are. A flag takes a folder, a file, a repo, and never
// the type that holds it.
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

// TestFold: what is too wide continues below its column or indented, and nothing else changes.
func TestFold(t *testing.T) {
	for _, x := range []struct {
		width    int
		in, want string
	}{
		{0, "as long as it is\n", "as long as it is\n"},
		{20, "fits\n\n  fits too\n", "fits\n\n  fits too\n"},
		{20, "twenty columns wide!\nno", "twenty columns wide!\nno"},
		{20, "a sentence that is longer\n", "a sentence that is\n  longer\n"},
		{20, "    such as something longer\n", "    such as\n      something\n      longer\n"},
		{20, "name  a text that is long\n", "name  a text that is\n      long\n"},
		{20, "one  two  three four five six\n", "one  two  three four\n          five six\n"},
		{20, "a column  too wide  rest of it\n", "a column  too wide\n    rest of it\n"},
		{20, "  five  columns  of  a  wide table\n", "  five columns of a\n    wide table\n"},
		{20, "  this  table  is  wide  ratio  name\n", "  this table is wide\n    ratio name\n"},
		{20, "an_address_that_nobody_can_break\n", "an_address_that_nobody_can_break\n"},
		{20, "see an_address_that_nobody_can_break\n", "see\n  an_address_that_nobody_can_break\n"},
		{20, "resume with: df11-convert org/name --push\n", "resume with:\n  df11-convert org/name --push\n"},
		{20, "\x1b[36mhint:\x1b[m a text of 20\n", "\x1b[36mhint:\x1b[m a text of 20\n"},
	} {
		if got := terminal.Fold(x.in, x.width, 2); got != x.want {
			t.Errorf("%d columns: %q becomes %q, want %q", x.width, x.in, got, x.want)
		}
	}
}
