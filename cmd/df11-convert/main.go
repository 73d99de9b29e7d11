// Command df11-convert rewrites BF16 models as DFloat11, verifies the round trip bit for bit, and
// publishes the result. It turns flags into options and draws progress; everything else lives in
// the packages it calls.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// errInterrupted is the cause of a context that a signal has ended, or --stop-after.
var errInterrupted = errors.New("interrupted")

// run is the whole program: arguments in, exit code out.
func run(args []string, stdout, stderr *os.File) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	watchSignals(cancel)
	u := newUI(stdout, stderr)
	return execute(ctx, u, args)
}

// execute runs a command line and reports how it ended.
func execute(ctx context.Context, u *ui, args []string) int {
	root := rootCommand(u, args)
	c, err := root.ExecuteContextC(ctx)
	if wraps[usageError](err) {
		parseGlobal(root, args)
	}
	u.command = commandName(c)
	return u.report(ctx, err)
}

// watchSignals lets the first signal stop the work and a later one the process.
func watchSignals(cancel context.CancelCauseFunc) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		awaitSecond(c, cancel)
		os.Exit(exitInterrupted)
	}()
}

// oneSignal is how long what arrives still belongs to the first signal: timeout(1) and other
// wrappers send it to the program and to its process group, so that it comes twice.
const oneSignal = time.Second

// awaitSecond cancels at the first signal and returns at the second.
func awaitSecond(c <-chan os.Signal, cancel context.CancelCauseFunc) {
	<-c
	cancel(errInterrupted)
	for first := time.Now(); time.Since(first) < oneSignal; {
		<-c
	}
}
