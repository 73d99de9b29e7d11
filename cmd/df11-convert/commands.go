//go:build !js

package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// patience limits how long a call waits for the Hub in all; 0 is the limit for batch jobs.
const patience = 0

// addCommands adds all commands, in the order in which help lists them.
func addCommands(root *cobra.Command, u *ui) {
	root.SetVersionTemplate(`{{""}}`) // execute prints it
	convert := convertCommand(u)
	root.Flags().AddFlagSet(convert.Flags())
	root.Args, root.RunE = convert.Args, convert.RunE
	root.AddCommand(convert, planCommand(u), verifyCommand(u), decodeCommand(u), inspectCommand(u),
		batchCommand(u), statusCommand(u), kernelCommand(u), weightsCommand(u),
		demoCommand(u), addressCommand(u), audienceCommand(u))
}

// notifyHangup brings the signal of a terminal that is closed, unless nohup made the program ignore
// it, so that the work goes on.
func notifyHangup(c chan<- os.Signal) {
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
}
