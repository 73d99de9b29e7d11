package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
)

// patience is a visitor's, not a batch job's.
const patience = 15 * time.Second

// addCommands adds the commands that a page runs, which only read from a Hub. That keeps what the
// others need out of the binary.
func addCommands(root *cobra.Command, u *ui) {
	root.AddCommand(planCommand(u), verifyCommand(u), addressCommand(u))
}

// notifyHangup does nothing: a browser has no signals.
func notifyHangup(chan<- os.Signal) {}
