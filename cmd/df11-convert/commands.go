//go:build !js

package main

import "github.com/spf13/cobra"

// addCommands adds all commands, in the order in which help lists them.
func addCommands(root *cobra.Command, u *ui) {
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	convert := convertCommand(u)
	for _, name := range []string{"output", "push", "repo-id", "private", "memory", "disk"} { // for help and completion: see withCommand
		root.Flags().AddFlag(convert.Flags().Lookup(name))
	}
	root.AddCommand(convert, planCommand(u), verifyCommand(u), decodeCommand(u), inspectCommand(u), batchCommand(u), statusCommand(u),
		demoCommand(u))
}
