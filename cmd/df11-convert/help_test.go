package main

import (
	"os"
	"regexp"
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

// TestHelp checks that help fits terminals of 80 columns, except for cobra's text about shells, and
// lists every flag that it takes, none hidden. Flags take a folder, a file, or a repo; none takes a
// "string".
func TestHelp(t *testing.T) {
	commands := allCommands()
	if len(commands) < 9 {
		t.Errorf("%d commands", len(commands))
	}
	for _, c := range commands {
		var b strings.Builder
		writeHelp(&b, c, 80)
		for line := range strings.Lines(b.String()) {
			ofCobra := strings.Contains(c.CommandPath(), " completion ")
			if n := terminal.Columns(strings.TrimSuffix(line, "\n")); n > 80 && !ofCobra {
				t.Errorf("%s --help has %d columns: %q", c.CommandPath(), n, line)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); name == "string" {
				t.Errorf("%s --help: --%s takes a string", c.Name(), f.Name)
			}
			own := regexp.MustCompile(`(?m)^  (-.,|   ) --` + f.Name + ` `) // not in a text or an example
			if !own.MatchString(b.String()) && c.HasParent() {
				t.Errorf("%s --help: no --%s", c.Name(), f.Name)
			}
		})
	}
}
