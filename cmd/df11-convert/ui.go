package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/terminal"
	"github.com/df11-convert/df11-convert/pipeline"
)

// The rules for what the program prints:
//   - Results go to stdout, everything else to stderr. With --json, stdout has only the document.
//   - Messages are lower case, name the thing, and have no period.
//   - An error is one line, "df11-convert: …". Lines "hint: …" follow it wherever you can act.
//   - With --log-format json, every line on stderr is one JSON object, errors and progress too.
//   - Only glyphs, line ends, tabs, and our own sequences reach a terminal (internal/terminal).
//   - It never prints a token, or the query of a URL.

// ui is where the program talks to its user.
type ui struct {
	out       *results
	err       *os.File
	screen    *terminal.Screen // over err, for everything but results
	quiet     bool
	json      bool
	verbose   bool
	logFormat string
	args      []string
	resume    string // command that continues after an interruption
	command   string // the running command, for --json
	running   *cobra.Command
	found     any // what the command found, for --json

	read, published int64 // bytes, of all conversions
	list            bool  // a list's models are converted
	now             work
}

// work is what is kept of one conversion.
type work struct {
	model string // of a list
	// weight files that are finished and kept, those of them that a commit has put into a repo, and
	// all
	finished, uploaded, files int64
	uploads                   bool // the result is published, so no folder of yours has to hold it
}

func newUI(out, err *os.File) *ui {
	u := &ui{out: &results{to: out}, err: err, screen: &terminal.Screen{W: err}}
	u.screen.Width = func() int {
		if !u.terminal() {
			return 0
		}
		width, _ := size(err)
		return width
	}
	return u
}

// register adds the flags that all commands have.
func (u *ui) register(p *pflag.FlagSet) {
	p.BoolVarP(&u.quiet, "quiet", "q", false, "print only results and errors")
	p.BoolVar(&u.json, "json", false, "print the result as JSON on stdout")
	p.BoolVarP(&u.verbose, "verbose", "v", false, "log every step and request on stderr")
	p.StringVar(&u.logFormat, "log-format", logText,
		"log `format` on stderr: text, or json (one object per line)")
}

// terminal reports whether stderr is a terminal on which progress can be redrawn. CI keeps a log,
// even if it looks like a terminal.
func (u *ui) terminal() bool {
	return !u.jsonLog() && term.IsTerminal(int(u.err.Fd())) && os.Getenv("TERM") != "dumb" &&
		os.Getenv("CI") == ""
}

// size returns the width and height of a terminal in characters, 80 and 24 if they're unknown.
func size(f *os.File) (width, height int) {
	if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
		return w, h
	}
	return 80, 24
}

// paint colors a text for stderr on a terminal, unless NO_COLOR is set.
func (u *ui) paint(st terminal.Style, text string) string {
	if st == "" || !u.terminal() || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[m"
}

// The forms of --log-format.
const (
	logText = "text"
	logJSON = "json"
)

// jsonLog reports whether every line on stderr is a JSON object.
func (u *ui) jsonLog() bool { return u.logFormat == logJSON }

// say prints a line for people on stderr, unless --quiet.
func (u *ui) say(format string, args ...any) {
	switch {
	case u.quiet:
	case u.jsonLog():
		u.log().Info(fmt.Sprintf(format, args...))
	default:
		printf(u.screen, format+"\n", args...)
	}
}

// result prints what text writes; with --quiet it prints only the line brief, if that isn't empty.
// With --json it keeps found, a struct or a map, for the document that report prints.
func (u *ui) result(found any, brief string, text func(w io.Writer)) {
	switch {
	case u.json:
		u.found = found
	case u.quiet:
		if brief != "" {
			fmt.Fprintln(u.out, brief)
		}
	default:
		var b strings.Builder
		text(&b)
		fmt.Fprint(u.out, terminal.Fold(b.String(), u.out.width()))
	}
}

// log returns the logger for the other packages. It logs warnings by default, every step as JSON,
// every request too with --verbose, and errors with --quiet.
func (u *ui) log() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case u.quiet:
		level = slog.LevelError
	case u.verbose:
		level = slog.LevelDebug
	case u.jsonLog():
		level = slog.LevelInfo
	}
	opt := &slog.HandlerOptions{Level: level}
	if u.jsonLog() {
		return slog.New(slog.NewJSONHandler(u.screen, opt))
	}
	text := slog.NewTextHandler(u.screen, opt)
	if u.verbose && !u.quiet {
		return slog.New(text)
	}
	return slog.New(people{text, u.screen})
}

// report prints the document of --json, or an error with its hints, and returns the exit code.
func (u *ui) report(ctx context.Context, err error) int {
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		err = errInterrupted
	}
	f := u.failure(err)
	if u.json {
		u.out.err = cmp.Or(u.out.err, outcomeOf(u.command, f).write(u.out, u.found, u.jsonLog()))
	}
	if f == nil && u.out.err != nil {
		f = failureOf(u.out.err)
	}
	if f == nil {
		return exitOK
	}
	if _, printed := errors.AsType[printedError](err); !printed || u.jsonLog() {
		u.complain("", f)
	}
	return f.exit
}

// printedError is an error that was printed already. A JSON log still ends with it.
type printedError struct{ error }

func (e printedError) Unwrap() error { return e.error }

// advise prints the hints about an error that the result will name in its last line. For JSON the
// error stays as any other.
func (u *ui) advise(err error) error {
	if err == nil || u.json || u.jsonLog() {
		return err
	}
	u.hint(failureOf(commandError{err, u.running}).hints)
	return printedError{err}
}

// hint prints what you can do, one line per hint.
func (u *ui) hint(hints []string) {
	for _, h := range hints {
		u.screen.Line(u.paint(terminal.Cyan, "hint:"), h)
	}
}

// resumable are the kinds of errors that can end hours of work, and after which the same command
// goes on once you have done what the hint says. A temporary error has the step "retry" instead.
var resumable = []pipeline.Kind{pipeline.ErrDiskFull, pipeline.ErrUnauthorized, pipeline.ErrGated,
	pipeline.ErrQuota, pipeline.ErrHubConflict}

// failure describes the error that ends the program; nil for nil. It adds hints that depend on the
// command line.
func (u *ui) failure(err error) *failure {
	if err == nil {
		return nil
	}
	f := failureOf(commandError{err, u.running})
	switch {
	case f.exit == exitUsage && len(f.hints) == 0:
		f.advise(hint.Help.With("command", u.command).String())
	case u.resume != "" && (f.exit == exitInterrupted || f.Next == "retry" ||
		u.now.finished > 0 && slices.Contains(resumable, pipeline.Kind(f.Kind))):
		f.advise(u.saved() + "resume with: " + u.resume)
	}
	return f
}

// saved says how much of the interrupted conversion is kept, as far as the run has looked: what
// earlier runs saved counts only then. Of a list, it's the model whose turn it was; the list's
// report counts the others.
func (u *ui) saved() string {
	switch {
	case u.list && u.now.model == "":
		return ""
	case u.list:
		return u.now.model + ": " + u.now.String() + "; "
	}
	return u.now.String() + "; "
}

func (w work) String() string {
	files := human.Count(int(w.files), "weight file")
	switch {
	case w.finished == 0:
		return "this run has saved nothing"
	case !w.uploads && w.finished < w.files:
		return fmt.Sprintf("%d of %s saved in the folder", w.finished, files)
	case !w.uploads:
		return files + " saved in the folder, but the files next to them aren't complete"
	case w.uploaded == 0: // a last commit may have arrived
		return fmt.Sprintf("%d of %s saved", w.finished, files)
	case w.uploaded < w.files:
		return fmt.Sprintf("%d of %s saved, at least %d of them published", w.finished, files, w.uploaded)
	}
	return files + " published, but maybe not the files next to them"
}

// complain prints an error about of ("" is the whole run) and its hints. --verbose adds the
// details.
func (u *ui) complain(of string, f *failure) {
	text := f.Message
	if u.verbose && f.Detail != "" {
		text = f.Detail
	}
	if of != "" {
		text = of + ": " + strings.TrimPrefix(text, of+": ")
	}
	if u.jsonLog() {
		u.log().Error(text, "exit_code", f.exit, "hints", append([]string{}, f.hints...))
		return
	}
	u.screen.Line(u.paint(terminal.Red, "df11-convert:"), text)
	u.hint(f.hints)
}

// people is a log handler for people: each warning is one sentence, without the time and the keys.
// No package adds attributes or groups to the logger.
type people struct {
	slog.Handler // decides which levels are enabled
	w            io.Writer
}

func (h people) Handle(_ context.Context, r slog.Record) error {
	parts := []string{"warning", r.Message}
	r.Attrs(func(a slog.Attr) bool {
		parts = append(parts, a.Value.String())
		return true
	})
	_, err := io.WriteString(h.w, human.OneLine(strings.Join(parts, ": "))+"\n")
	return err
}
