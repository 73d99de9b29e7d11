// Command df11-convert rewrites BF16 models as DFloat11, verifies the round trip bit for bit, and
// publishes the result. It turns flags into options and draws progress; everything else lives in
// the packages it calls.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/df11-convert/df11-convert/internal/usage"
)

func main() {
	readAllProxy(os.Getenv, os.Setenv)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// errInterrupted is the cause of a context that a signal or --stop-after ended.
var errInterrupted = errors.New("interrupted")

// run is the whole program: arguments in, exit code out.
func run(args []string, stdout, stderr *os.File) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	watchSignals(cancel)
	u := newUI(stdout, stderr)
	log.SetFlags(0)
	log.SetOutput(fromLibraries{u})
	return execute(ctx, u, args)
}

// fromLibraries writes to the log what libraries print. On Windows, go-huggingface warns of every
// lock file, because it removes them while they're open.
type fromLibraries struct{ *ui }

func (l fromLibraries) Write(text []byte) (int, error) {
	l.log().Info(strings.TrimSpace(string(text)))
	return len(text), nil
}

// execute runs a command line, reports how it ended, and returns the exit code.
func execute(ctx context.Context, u *ui, args []string) int {
	root := rootCommand(u, args)
	c, err := root.ExecuteContextC(ctx)
	if usage.Is(err) {
		parseGlobal(root, args)
	}
	u.command, u.running = cmp.Or(u.command, commandName(c)), c
	if v := c.Flags().Lookup("version"); err == nil && v != nil && v.Changed {
		u.command = "version"
		text := "df11-convert " + versionText()
		u.result(map[string]any{"version": versionText()}, text,
			func(w io.Writer) { fmt.Fprintln(w, text) })
	}
	return u.report(ctx, err)
}

// watchSignals makes the first signal stop the work and a later one end the process.
func watchSignals(cancel context.CancelCauseFunc) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	notifyHangup(c)
	go func() {
		awaitSecond(c, cancel)
		os.Exit(exitInterrupted)
	}()
}

// oneSignal is how long signals still count as the first one. timeout(1) and other wrappers send
// theirs to the program and to its process group, so it arrives twice.
const oneSignal = time.Second

// awaitSecond cancels at the first signal and returns at the second.
func awaitSecond(c <-chan os.Signal, cancel context.CancelCauseFunc) {
	<-c
	cancel(errInterrupted)
	for first := time.Now(); time.Since(first) < oneSignal; {
		<-c
	}
}
