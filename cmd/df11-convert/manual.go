//go:build man

package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// The tag man adds a command that writes man pages and completions for packages. The released
// program leaves it out, and with it the renderer of man pages.
func init() { packaging = append(packaging, manualCommand) }

func manualCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "manual DIR",
		Short:  "Write man pages and shell completions",
		Hidden: true,
		Args:   exactArgs(1, "DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			return writeManual(c.Root(), args[0])
		},
	}
}

// heading matches the headings of surroundings.
var heading = regexp.MustCompile(`(?m)^\S.*:$`)

// writeManual writes dir/man, dated by SOURCE_DATE_EPOCH, and dir/completions, with the file names
// that the shells look for.
func writeManual(root *cobra.Command, dir string) error {
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	if err := errors.Join(os.MkdirAll(man, 0o777), os.MkdirAll(completions, 0o777)); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	root.Long += "\n\n" + heading.ReplaceAllStringFunc(strings.ReplaceAll(surroundings, "\n  ",
		"\n    "), func(title string) string {
		return "# " + strings.ToUpper(strings.TrimSuffix(title, ":")) + "\n"
	})
	return errors.Join(
		doc.GenManTree(root, &doc.GenManHeader{Section: "1",
			Source: "df11-convert " + versionText(), Manual: "df11-convert"}, man),
		root.GenBashCompletionFileV2(filepath.Join(completions, "df11-convert.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_df11-convert")),
		root.GenFishCompletionFile(filepath.Join(completions, "df11-convert.fish"), true),
		root.GenPowerShellCompletionFileWithDesc(filepath.Join(completions, "df11-convert.ps1")),
	)
}
