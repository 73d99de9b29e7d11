package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/df11-convert/df11-convert/hub"
)

// The rules of what the program says:
//   - results go to stdout, everything else to stderr; nothing but the result document with --json
//   - messages are lower case, name the thing, and have no full stop
//   - an error is one line, "df11-convert: …", and is followed by "hint: …" lines wherever the user can act
//   - with --log-format json every line on stderr is one JSON object, errors and progress too; --quiet wins over all else
//   - no token, and no query of a URL, is ever printed

// ui is where the program talks to its user.
type ui struct {
	out, err  *os.File
	quiet     bool
	json      bool
	verbose   bool
	logFormat string
	resume    string // command that continues after an interruption
	kept      bool   // the run has left work from which this command continues
	governor  *hub.Governor
}

func newUI(out, err *os.File) *ui { return &ui{out: out, err: err, governor: hub.NewGovernor()} }

// terminal reports whether the progress line can be redrawn.
func (u *ui) terminal() bool {
	return !u.jsonLog() && term.IsTerminal(int(u.err.Fd())) && os.Getenv("TERM") != "dumb"
}

// width is the terminal's width in characters, 80 if it is unknown.
func (u *ui) width() int {
	if w, _, err := term.GetSize(int(u.err.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// color reports whether stderr may have escape codes.
func (u *ui) color() bool { return u.terminal() && os.Getenv("NO_COLOR") == "" }

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
		fmt.Fprintf(u.err, format+"\n", args...)
	}
}

// result prints the outcome: v as JSON with --json, else what text writes.
func (u *ui) result(v any, text func(w io.Writer)) error {
	if !u.json {
		text(u.out)
		return nil
	}
	e := json.NewEncoder(u.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// log is the logger of the other packages: warnings by default, every step with --verbose or as JSON, errors with --quiet.
func (u *ui) log() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case u.quiet:
		level = slog.LevelError
	case u.verbose, u.jsonLog():
		level = slog.LevelInfo
	}
	switch opt := (&slog.HandlerOptions{Level: level}); {
	case u.jsonLog():
		return slog.New(slog.NewJSONHandler(u.err, opt))
	case u.verbose && !u.quiet:
		return slog.New(slog.NewTextHandler(u.err, opt))
	}
	return slog.New(people{w: u.err, level: level})
}

// noteWait says why nothing moves, if the pause is long enough for people to wonder.
func (u *ui) noteWait(w hub.Wait) {
	if w.For >= 5*time.Second {
		u.say("waiting %s: %s", w.For.Round(time.Second), w.Reason)
	}
}

// report prints an error with its hints and gives the exit code.
func (u *ui) report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	code, text, hs := exitCode(err), err.Error(), hints(err)
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		code, text, hs = exitInterrupted, errInterrupted.Error(), nil
		if u.resume != "" {
			hs = []string{"nothing is lost; go on with: " + u.resume}
		}
	case code == exitError && u.resume != "" && u.kept:
		hs = append(hs, "what is done is kept; go on with: "+u.resume)
	}
	u.complain(text, code, hs)
	return code
}

// complain prints an error and the hints about it.
func (u *ui) complain(text string, code int, hs []string) {
	if u.jsonLog() {
		u.log().Error(text, "exit_code", code, "hints", append([]string{}, hs...))
		return
	}
	fmt.Fprintf(u.err, "df11-convert: %s\n", text)
	for _, h := range hs {
		fmt.Fprintf(u.err, "hint: %s\n", h)
	}
}

// shellQuote makes an argument safe to paste into a shell.
func shellQuote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=@:,+"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
