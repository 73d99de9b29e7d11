package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"testing"
)

// TestResumeNamesTheRunsOwnArguments checks that the command that resumes is that of the run, not
// that of the process.
func TestResumeNamesTheRunsOwnArguments(t *testing.T) {
	for _, args := range [][]string{{"./none", "-o", "a b"}, {"batch", "./none.yaml", "--push"}} {
		u := newUI(os.Stdout, os.Stderr)
		if err := rootCommand(u, args).ExecuteContext(t.Context()); err == nil {
			t.Fatal("it ran")
		}
		if want := resumeCommand(args); u.resume != want {
			t.Errorf("got %q, want %q", u.resume, want)
		}
	}
}

// TestPeople checks that the log for people writes a warning as one sentence, and nothing below
// that level.
func TestPeople(t *testing.T) {
	var b bytes.Buffer
	warnings := &slog.HandlerOptions{Level: slog.LevelWarn}
	l := slog.New(people{slog.NewTextHandler(&b, warnings), &b})
	l.Info("not shown")
	l.Warn("read again", "err", errors.New("wrong sum"), "n", 3)
	const want = "warning: read again: wrong sum: 3\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
