//go:build man

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// The tag man adds a command that writes what packages hold beside the program. It is no part of the program itself, which
// needs no renderer of man pages.
func init() { packaging = append(packaging, manualCommand) }

func manualCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "manual DIR",
		Short:  "Write man pages and shell completions",
		Hidden: true,
		Args:   exactArgs(1, "DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			root.DisableAutoGenTag = true
			root.RemoveCommand(c)
			if err := writePages(root, filepath.Join(args[0], "man")); err != nil {
				return err
			}
			return writeCompletions(root, filepath.Join(args[0], "completions"))
		},
	}
}

// writePages writes the man page of a command and those of its subcommands, compressed. Their date is SOURCE_DATE_EPOCH.
func writePages(c *cobra.Command, dir string) error {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			if err := writePages(sub, dir); err != nil {
				return err
			}
		}
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b) // without time and name: the same page gives the same bytes
	head := &doc.GenManHeader{Section: "1", Source: "df11-convert " + versionText(), Manual: "df11-convert"}
	if err := doc.GenMan(c, head, z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return writeNew(filepath.Join(dir, manName(c)), func(w io.Writer) error { _, err := b.WriteTo(w); return err })
}

// manName is the file name of a man page: df11-convert-verify.1.gz.
func manName(c *cobra.Command) string {
	name := c.Name()
	for p := c.Parent(); p != nil; p = p.Parent() {
		name = p.Name() + "-" + name
	}
	return name + ".1.gz"
}

// writeCompletions writes one file for each shell, under the name by which the shell finds it.
func writeCompletions(root *cobra.Command, dir string) error {
	for name, write := range map[string]func(io.Writer) error{
		"df11-convert.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"_df11-convert":     root.GenZshCompletion,
		"df11-convert.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"df11-convert.ps1":  root.GenPowerShellCompletionWithDesc,
	} {
		if err := writeNew(filepath.Join(dir, name), write); err != nil {
			return err
		}
	}
	return nil
}

func writeNew(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return f.Close()
}
