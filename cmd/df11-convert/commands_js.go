package main

import "github.com/spf13/cobra"

// addCommands adds those that a page runs: they read, and only from a Hub. What the others need is
// not linked then.
func addCommands(root *cobra.Command, u *ui) { root.AddCommand(planCommand(u), verifyCommand(u)) }
